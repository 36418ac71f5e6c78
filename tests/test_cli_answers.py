"""Classifiers at the command line: kept, used again, with counter-examples, and with a say in what is rejected."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import classification_report

import manymetrics as mm
from manymetrics.cli import main

ASKED = "lamp on please now\nqwpoei zzxmn 99 !!\nplay some music\n"


def run(*words, **options):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words], **options)


def done(*words, **options):
    """Run a command that must succeed."""
    result = run(*words, **options)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory, model, shots):
    """A folder with a model, the examples of a task, counter-examples and texts to be asked."""
    folder = tmp_path_factory.mktemp("answers")
    model.save(folder / "model")
    lines = (f"{text}\t{label}\n" for text, label in zip(shots.texts, shots.labels, strict=True))
    (folder / "shots.tsv").write_text("".join(lines))
    (folder / "outside.txt").write_text("play football\n\nplay chess with me\n")
    (folder / "asked.txt").write_text(ASKED)
    return folder


@pytest.fixture(scope="module")
def classifier(model, shots):
    return model.adapt(shots.texts, shots.labels)


def rows(result):
    return [line.split("\t") for line in result.stdout.splitlines()]


def test_what_is_rejected_has_a_word_for_a_label_and_its_scope_is_shown(place, classifier):
    words = ["predict", place / "model", "--examples", place / "shots.tsv", "--input", place / "asked.txt"]
    texts = ASKED.splitlines()
    scope = classifier.scope_proba(texts)
    bar = float(scope.mean())
    found = rows(done(*words, "--reject", bar))
    assert [float(row[2]) for row in found] == pytest.approx(scope, abs=1e-4)
    wanted = [
        label if kept else "rejected" for label, kept in zip(classifier.predict(texts), scope >= bar, strict=True)
    ]
    assert [row[0] for row in found] == wanted
    assert "rejected" in wanted
    assert [row[3] for row in found] == texts
    assert [row[0] for row in rows(done(*words, "--reject", bar, "--rejected-label", "none"))].count("none") > 0
    assert all(len(row) == 3 for row in rows(done(*words))), "without rejection no column of it"
    assert done(*words, "--reject", 0).stdout == done(*words).stdout
    assert run(*words, "--reject", 2).exit_code == 2


def test_json_says_why_a_text_is_rejected_and_its_label_is_null(place):
    words = ["predict", place / "model", "--examples", place / "shots.tsv", "--reject", 1, "--json", "hello"]
    found = json.loads(done(*words).stdout)
    assert (found["label"], found["rejected"]) == (None, True)
    assert found["reason"].startswith("the text is in scope with a probability of ")
    margin = json.loads(done(*words[:4], "--margin", 1, "--json", "hello").stdout)
    assert "are closer than the margin of 100%" in margin["reason"]


def test_the_labels_of_a_tsv_can_be_reported_on(place):
    words = ["predict", place / "model", "--examples", place / "shots.tsv", "--input", place / "asked.txt"]
    found = [row[0] for row in rows(done(*words, "--margin", 1))]
    assert set(found) == {"rejected"}
    assert "rejected" in classification_report(["lamp", "rejected", "music"], found, zero_division=0)


def test_a_label_that_is_the_word_for_rejected_ones_is_refused(place, tmp_path):
    (tmp_path / "odd.tsv").write_text("on\tlamp\noff\trejected\n")
    words = ["predict", place / "model", "--examples", tmp_path / "odd.tsv", "--reject", 0.1, "on"]
    result = run(*words)
    assert result.exit_code == 2
    assert "There is a label 'rejected' among the examples. Give another word with --rejected-label." in result.stderr
    assert done(*words, "--rejected-label", "none").exit_code == 0


def test_the_threshold_can_be_chosen_by_the_share_that_may_be_lost(place, classifier, shots):
    words = ["adapt", place / "model", "--examples", place / "shots.tsv", "--json"]
    about = json.loads(done(*words, "--reject-share", 0.2).stdout)
    assert about["reject"] == pytest.approx(classifier.scope_threshold(0.2))
    assert list(about["thresholds"]) == ["0.01", "0.05", "0.1"]
    assert about["thresholds"]["0.01"] < about["thresholds"]["0.05"] < about["thresholds"]["0.1"] < about["reject"]
    told = done(*words[:-1], "--reject-share", 0.2).stdout
    assert f"A text is rejected if its probability of being in scope is below {about['reject']:.3f}." in told
    assert f"5% with --reject {about['thresholds']['0.05']:.3f}" in told
    assert "No text is rejected." in done(*words[:-1]).stdout


def test_a_share_that_cannot_be_told_is_refused(place, tmp_path):
    (tmp_path / "one.tsv").write_text("on\tlamp\nplay\tmusic\n")
    words = ["predict", place / "model", "--examples", tmp_path / "one.tsv", "hi"]
    result = run(*words, "--reject-share", 0.05)
    assert result.exit_code == 2
    assert "fewer than two can be. Give labels two different examples, or a threshold of your own." in result.stderr
    told = done("adapt", place / "model", "--examples", tmp_path / "one.tsv", "--json").stdout
    assert set(json.loads(told)["thresholds"].values()) == {None}


def test_counter_examples_lower_the_scope_of_what_is_like_them(place):
    words = ["predict", place / "model", "--examples", place / "shots.tsv", "--json", "play chess with me"]
    before = json.loads(done(*words).stdout)
    after = json.loads(done(*words, "--counter-examples", place / "outside.txt").stdout)
    assert after["scope"] < before["scope"]
    assert after["probabilities"].keys() == before["probabilities"].keys()


def test_counter_examples_that_are_none_are_refused(place, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    words = ["adapt", place / "model", "--examples", place / "shots.tsv", "--counter-examples"]
    for name, told in (
        ("blank.txt", "found no counter-examples. Write one text a line."),
        ("gone", "cannot be opened"),
    ):
        result = run(*words, tmp_path / name)
        assert result.exit_code == 2
        assert told in result.stderr


def test_a_saved_classifier_answers_as_the_one_that_was_saved(place, model, tmp_path):
    task = ["--examples", place / "shots.tsv", "--counter-examples", place / "outside.txt"]
    limits = ["--reject-share", 0.3, "--margin", 0.05, "--rejected-label", "none"]
    saved = done("adapt", place / "model", *task, *limits, "--save", tmp_path / "kept")
    assert f"The classifier is in {tmp_path / 'kept'}, with its example texts." in saved.stderr
    assert "and 2 counter-examples" in saved.stdout
    kept = ["--classifier", tmp_path / "kept"]
    asked = ["--input", place / "asked.txt", "--json"]
    assert done("predict", place / "model", *kept, *asked).stdout == (
        done("predict", place / "model", *task, *limits, *asked).stdout
    )
    assert rows(done("predict", place / "model", *kept, "--reject", 1, "hi"))[0][0] == "none"
    text = "play that tune"
    explained = ["explain", place / "model", text, "--json"]
    assert done(*explained, *kept).stdout == done(*explained, *task, *limits).stdout
    assert done("doctor", place / "model", *kept).stdout == done("doctor", place / "model", *task).stdout
    in_python = mm.load_classifier(tmp_path / "kept", model)
    assert (in_python.margin, in_python.rejected, len(in_python.counter_examples_)) == (0.05, "none", 2)


def test_a_classifier_of_another_model_or_over_other_files_is_refused(place, make_model, tmp_path):
    make_model(seed=5).save(tmp_path / "other")
    words = ["adapt", tmp_path / "other", "--examples", place / "shots.tsv", "--save"]
    done(*words, tmp_path / "kept")
    result = run("predict", place / "model", "--classifier", tmp_path / "kept", "hi")
    assert result.exit_code == 2
    assert "was adapted from another model" in result.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("do not lose")
    assert run(*words, tmp_path / "mine").exit_code == 2
    assert (tmp_path / "mine" / "notes.txt").read_text() == "do not lose"


def test_a_classifier_made_in_python_can_be_used(place, model, shots, tmp_path):
    model.adapt(shots.texts, shots.labels, reject=True).save(tmp_path / "kept")
    words = [place / "model", "--classifier", tmp_path / "kept"]
    found = rows(done("predict", *words, "--input", place / "asked.txt"))
    assert all(len(row) == 4 for row in found)
    assert json.loads(done("adapt", *words, "--json").stdout)["reject"] == 0.5


def test_explain_rejects_only_where_that_is_asked_for(place):
    words = ["explain", place / "model", "--examples", place / "shots.tsv", "hello", "--json"]
    (found,) = json.loads(done(*words).stdout)["explanations"]
    assert found["rejected"] is None
    (found,) = json.loads(done(*words, "--reject", 1).stdout)["explanations"]
    assert found["rejected"].startswith("the text is in scope with a probability of ")


def test_examples_that_do_not_tell_the_labels_apart_are_said_to_be_chance(place, tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("bcdfghjklmnp"), 7)) for _ in range(24)]
    lines = [f"{word}\t{'abcd'[number % 4]}\n" for number, word in enumerate(words)]
    (tmp_path / "random.tsv").write_text("".join(lines))
    words = [place / "model", "--examples", tmp_path / "random.tsv"]
    assert "% right, which is chance: the examples do not tell the labels apart" in done("adapt", *words).stdout
    assert json.loads(done("adapt", *words, "--json").stdout)["chance"] is True
    assert json.loads(done("doctor", *words, "--json").stdout)["chance"] is True
    sure = [place / "model", "--examples", place / "shots.tsv"]
    assert json.loads(done("adapt", *sure, "--json").stdout)["chance"] is False


def test_how_common_labels_are_can_be_told(place, classifier):
    words = ["--examples", place / "shots.tsv"]
    shares = [
        word for label in classifier.classes_ for word in ("--class-prior", f"{label}={8 if label == 'lamp' else 1}")
    ]
    told = json.loads(done("predict", place / "model", *words, *shares, "--json", "--proba", "hello").stdout)
    plain = json.loads(done("predict", place / "model", *words, "--json", "--proba", "hello").stdout)
    assert told["probabilities"]["lamp"] > plain["probabilities"]["lamp"]
    about = done("adapt", place / "model", *words, *shares).stdout
    assert "Labels are taken to be as common as this: lamp 80%, meeting 10%, music 10%." in about
    assert "as common as" not in done("adapt", place / "model", *words).stdout
    for wrong, said in (
        ("lamp", "as in: refund=0.2"),
        ("lamp=much", "as in: refund=0.2"),
        ("door=1", "'door' is in class_prior and not in the examples"),
    ):
        result = run("predict", place / "model", *words, "--class-prior", wrong, "hello")
        assert result.exit_code == 2
        assert said in result.stderr
