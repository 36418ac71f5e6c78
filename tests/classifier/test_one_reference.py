"""A classifier that is asked while it grows answers from one whole state, and a fit that fails changes nothing."""

import linecache
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import manymetrics
from manymetrics.classifier import FewShotClassifier

PACKAGE = str(Path(manymetrics.__file__).parent)
ASKED = ["lamp on", "any music", "a meeting", "a lone duck", ""]
DUCKS = ["a lone duck", "two ducks"]
GROWTHS, THREADS = 60, 4


# --- asked while it grows


def test_every_answer_that_is_given_while_a_label_comes_and_goes_is_of_one_whole_state(by_letters, shots):
    classifier = FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
    whole = {classifier.predict_proba(ASKED).tobytes()}
    classifier.add_examples(DUCKS, ["duck", "duck"])
    whole.add(classifier.predict_proba(ASKED).tobytes())
    assert len(whole) == 2
    found, done = [], threading.Event()

    def ask():
        answers = []
        while not done.wait(0.02):
            answers.append(classifier.predict_proba(ASKED).tobytes())
            assert len(classifier.predict(ASKED)) == len(ASKED)
            assert sum(classifier.weights_.values()) == pytest.approx(1)
        return answers

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # threads take turns in the middle of everything
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            asking = [pool.submit(ask) for _ in range(THREADS)]
            for _ in range(GROWTHS):
                classifier.forget("duck")
                classifier.add_examples(DUCKS, ["duck", "duck"])
            done.set()
            found = [answer for future in asking for answer in future.result()]
    finally:
        done.set()
        sys.setswitchinterval(usual)
    assert len(found) > THREADS
    assert set(found) <= whole


# --- a fit that fails


class Stop(Exception):
    """What goes wrong in a line of ours."""


def run_until(line, act):
    """Let the line-th line of the package that is executed fail: how many were executed, and the one that failed."""
    count, failed = 0, None

    def in_ours(frame, event, argument):
        nonlocal count, failed
        if event == "line":
            count += 1
            if count == line:
                failed = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
                raise Stop
        return in_ours

    def trace(frame, event, argument):
        return in_ours if frame.f_code.co_filename.startswith(PACKAGE) else None

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Stop:
        return count, failed
    finally:
        sys.settrace(usual)
    return count, None


def test_a_fit_that_fails_at_any_line_leaves_the_classifier_as_it_was(make_model, shots):
    model = make_model()

    def fit(classifier):
        classifier.fit([*shots.texts, *DUCKS], [*shots.labels, "duck", "duck"], ["zzz"])

    def add(classifier):
        classifier.add_examples(DUCKS, ["duck", "duck"])

    for act in (fit, add):
        grown = model.adapt(shots.texts, shots.labels)
        before = grown.predict_proba(ASKED)
        act(grown)
        after = grown.predict_proba(ASKED)
        lines, _ = run_until(-1, partial(act, model.adapt(shots.texts, shots.labels)))
        assert lines > 500
        old, new = [], []
        for line in sorted({*np.linspace(1, lines, 60).astype(int).tolist(), *range(lines - 9, lines + 1)}):
            classifier = model.adapt(shots.texts, shots.labels)
            adapted = classifier.classifier_
            _, failed = run_until(line, partial(act, classifier))
            assert failed is not None
            (old if classifier.classifier_ is adapted else new).append(failed)
            expected = before if classifier.classifier_ is adapted else after
            assert (classifier.predict_proba(ASKED) == expected).all()
        assert len(old) >= 60
        assert new == ["return self"]  # when nothing else is left to be done, the new state is there, and whole
