"""The bench: answers are kept, asked for once, and done again when what they depend on has changed."""

from dataclasses import replace

import pytest
from experiments.banks import cap_tasks, cap_tests
from experiments.bench import Bench

from manymetrics.engine import Engine
from manymetrics.store import Run
from manymetrics.values import Examples, SharedData, Task, TaskBank


@pytest.fixture
def bench(tmp_path, tiny_bank, vectors):
    past, targets = tiny_bank.split_off("colour-1", "animal-1")
    shared_data = SharedData(past.without_tests(), vectors)
    run = Run.open(tmp_path / "run")
    return Bench(past, shared_data, targets, Engine(shared_data, run=run), run, "code", lambda progress: None)


class First:
    """A method that answers each text with the task's first label, and counts how often it was made and asked."""

    def __init__(self):
        self.made = self.asked = 0
        self.seen = set()

    def __call__(self):
        self.made += 1
        return {"first": self.answer, "second": self.answer}

    def answer(self, task):
        self.asked += 1
        self.seen |= set(task.test.labels)
        return [task.labels[0]] * len(task.test)


def test_answers_are_kept(bench):
    method = First()
    for _ in range(2):
        found = bench.answer("a title", {"first": {"seed": 0}}, method)
        assert [one.accuracy for one in found["first"].targets] == [pytest.approx(1 / 3)] * 2
    assert (method.made, method.asked) == (1, 2), "one making, two targets"
    bench.answer("a title", {"first": {"seed": 1}}, method)
    assert method.made == 2, "other settings, other answers"


def test_only_what_is_missing_is_asked_for(bench):
    method = First()
    bench.answer("a title", {"first": {}}, method)
    bench.answer("a title", {"first": {}, "second": {}}, method)
    assert (method.made, method.asked) == (2, 4)


def test_no_test_label_is_shown(bench):
    method = First()
    bench.answer("a title", {"first": {}}, method)
    assert method.seen == {"bird", "blue"}, "the first label of each task, whatever the text"


def test_a_change_of_the_code_makes_answers_stale(bench):
    method = First()
    bench.answer("a title", {"first": {}}, method)
    replace(bench, code="other code").answer("a title", {"first": {}}, method)
    assert method.made == 2


def test_the_majority_is_that_of_the_test_texts(bench):
    assert [one.accuracy for one in bench.majority().targets] == [pytest.approx(1 / 3)] * 2


def test_a_smaller_bank_keeps_every_label_in_its_share():
    labels = ("a",) * 80 + ("b",) * 18 + ("c",) * 2
    examples = Examples(tuple(map(str, range(100))), labels)
    small = cap_tasks(TaskBank((Task("t", examples, examples),)), tasks=1, train=20, valid=10)["t"]
    assert [small.train.labels.count(label) for label in "abc"] == [16, 4, 2]
    assert [small.valid.labels.count(label) for label in "abc"] == [8, 2, 0]
    assert list(map(int, small.train.texts)) == sorted(map(int, small.train.texts))
    assert cap_tasks(TaskBank((Task("t", examples),)), tasks=1, train=100, valid=10)["t"].train == examples
    both = TaskBank((Task("t", examples), Task("u", examples)))
    assert len(cap_tasks(both, tasks=1, train=100, valid=10)) == 1


def test_capped_targets_keep_their_shots_and_the_balance_of_their_tests():
    shots = Examples(("a", "b", "c"), ("x", "y", "z"))
    tests = Examples(tuple(f"text {number}" for number in range(100)), ("x",) * 80 + ("y",) * 19 + ("z",))
    targets = TaskBank((Task("t", shots, test=tests),), {"t": "target"})
    capped = cap_tests(targets, test=20)
    assert capped["t"].train == shots
    assert [capped["t"].test.labels.count(label) for label in "xyz"] == [16, 4, 1]
    pairs = [set(zip(examples.texts, examples.labels, strict=True)) for examples in (capped["t"].test, tests)]
    assert pairs[0] <= pairs[1]
    assert capped.role("t") == "target"
    assert cap_tests(targets, test=100)["t"] == targets["t"]
