"""Answers at the command line: rejection, counter-examples, class prior, saved classifiers, and texts from tables."""

import json

import pytest

import manymetrics as mm
from command_line import assert_refused, done, printed_json, printed_rows, run, write_shots

INPUT = "lamp on please now\nqwpoei zzxmn 99 !!\nplay some music\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shots):
    """A folder with the examples of a task, counter-examples and texts."""
    folder = tmp_path_factory.mktemp("answers")
    write_shots(folder / "shots.tsv", shots)
    (folder / "outside.txt").write_text("play football\n\nplay chess with me\n")
    (folder / "input.txt").write_text(INPUT)
    return folder


@pytest.fixture(scope="module")
def task(folder, model_folder):
    """The words that name the model and the examples."""
    return model_folder, "--examples", folder / "shots.tsv"


@pytest.fixture(scope="module")
def classifier(model, shots):
    return model.adapt(shots.texts, shots.labels)


def test_a_rejected_text_has_the_rejected_label_and_its_scope_is_printed(folder, task, classifier):
    words, texts = ["predict", *task, "--input", folder / "input.txt"], INPUT.splitlines()
    scope = classifier.scope_proba(texts)
    threshold = float(scope.mean())
    rows = printed_rows(*words, "--reject", threshold)
    in_scope = zip(classifier.predict(texts), scope >= threshold, strict=True)
    labels = [label if accepted else "rejected" for label, accepted in in_scope]
    assert "rejected" in labels
    assert [(row[0], row[3]) for row in rows] == list(zip(labels, texts, strict=True))
    assert [float(row[2]) for row in rows] == pytest.approx(scope, abs=1e-4)
    plain = printed_rows(*words)
    assert all(len(row) == 3 for row in plain), "without rejection there is no column for it"
    assert printed_rows(*words, "--reject", 0) == plain


def test_json_has_the_reason_of_a_rejection_and_no_label(task):
    answer = printed_json("predict", *task, "--reject", 1, "hello")
    assert (answer["label"], answer["rejected"]) == (None, True)
    assert answer["reason"].startswith("the text is in scope with a probability of ")
    assert "are closer than the margin of 100%" in printed_json("predict", *task, "--margin", 1, "hello")["reason"]


def test_a_label_that_equals_the_rejected_label_is_refused(model_folder, tmp_path):
    (tmp_path / "odd.tsv").write_text("on\tlamp\noff\trejected\n")
    words = ["predict", model_folder, "--examples", tmp_path / "odd.tsv", "--reject", 0.1, "on"]
    assert_refused(run(*words), "'rejected' is a label of the examples. Choose another word with --rejected-label.")
    done(*words, "--rejected-label", "none")


def test_the_threshold_can_be_chosen_by_the_share_of_rejected_texts(task, classifier):
    words = ["adapt", *task, "--reject-share", 0.2]
    summary = printed_json(*words)
    assert summary["chance"] is False
    assert summary["reject"] == pytest.approx(classifier.scope_threshold(0.2))
    assert list(summary["thresholds"]) == ["0.01", "0.05", "0.1"]
    thresholds = [*summary["thresholds"].values(), summary["reject"]]
    assert thresholds == sorted(set(thresholds))
    text = done(*words).stdout
    assert f"A text is rejected if its probability of being in scope is below {summary['reject']:.3f}." in text
    assert f"5% with --reject {summary['thresholds']['0.05']:.3f}" in text
    assert "No text is rejected." in done("adapt", *task).stdout


def test_suggestions_are_those_of_the_library(folder, task, classifier):
    expected = classifier.suggest(INPUT.splitlines(), 2)
    rows = printed_rows("suggest", *task, "--input", folder / "input.txt", "--count", 2)
    assert rows == [[item.label, f"{item.probability:.4f}", item.reason, item.text] for item in expected]
    lines = done("suggest", *task, "--count", 2, "--json", input=INPUT + "\n \n" + INPUT).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [vars(item) for item in expected]
    assert len(printed_rows("suggest", *task, "lamp on", "any music")) == 2


def test_a_saved_classifier_answers_as_before(folder, task, model, model_folder, tmp_path):
    options = ["--counter-examples", folder / "outside.txt"]
    limits = ["--reject-share", 0.3, "--margin", 0.05, "--rejected-label", "none"]
    path = tmp_path / "saved"
    adapted = done("adapt", *task, *options, *limits, "--save", path)
    assert f"The classifier is in {path}, with its example texts." in adapted.stderr
    assert "and 2 counter-examples" in adapted.stdout
    saved = [model_folder, "--classifier", path]
    texts = ["--input", folder / "input.txt", "--json"]
    assert done("predict", *saved, *texts).stdout == done("predict", *task, *options, *limits, *texts).stdout
    assert printed_rows("predict", *saved, "--reject", 1, "hi")[0][0] == "none"
    assert printed_json("explain", *saved, "a tune") == printed_json("explain", *task, *options, *limits, "a tune")
    assert done("doctor", *saved).stdout == done("doctor", *task, *options).stdout
    classifier = mm.load_classifier(path, model)
    assert (classifier.margin, classifier.rejected, len(classifier.counter_examples_)) == (0.05, "none", 2)


def test_a_classifier_is_replaced_only_with_replace(task, tmp_path, monkeypatch):
    words = ["adapt", *task, "--save", tmp_path / "saved"]
    done(*words)
    before = (tmp_path / "saved" / "classifier.safetensors").read_bytes()
    monkeypatch.setattr(mm, "load_model", lambda path: pytest.fail("the model was loaded first"))
    message = "saved holds a classifier already. Add --replace to replace it, or give another folder."
    assert_refused(run(*words, "--margin", 0.1), message)
    assert (tmp_path / "saved" / "classifier.safetensors").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("do not lose")
    assert_refused(run("adapt", *task, "--save", tmp_path / "mine"), "is there already and is not a classifier")
    monkeypatch.undo()
    done(*words, "--margin", 0.1, "--replace")
    assert (tmp_path / "saved" / "classifier.safetensors").read_bytes() != before


def test_a_class_prior_changes_the_probabilities(task, classifier):
    shares = {label: 8 if label == "lamp" else 1 for label in classifier.classes_}
    prior = [word for label, share in shares.items() for word in ("--class-prior", f"{label}={share}")]
    answer, plain = printed_json("predict", *task, *prior, "hello"), printed_json("predict", *task, "hello")
    assert answer["probabilities"]["lamp"] > plain["probabilities"]["lamp"]
    assert "Class prior: lamp 80%, meeting 10%, music 10%." in done("adapt", *task, *prior).stdout
    assert "Class prior" not in done("adapt", *task).stdout


TEXTS = ["turn it on, please", "two lines\n\nof one text", "", "play that tune"]
TABLES = {  # the texts, of which one is missing, beside another column
    "csv": 'id;Text\n1;"turn it on, please"\n2;"two lines\n\nof one text"\n3;\n4;play that tune\n',
    "tsv": "id\tText\n1\tturn it on, please\n2\ttwo lines  of one text\n3\t\n4\tplay that tune\n",
    "json": json.dumps([{"id": 1, "text": text or None} for text in TEXTS]),
    "jsonl": "".join(json.dumps({"id": 1, "text": text or None}) + "\n" for text in TEXTS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_rows_of_a_table_are_answered_in_order(task, tmp_path, kind):
    (tmp_path / f"in.{kind}").write_text(TABLES[kind])
    texts = [text.replace("\n", " ") if kind == "tsv" else text for text in TEXTS]
    rows, given = ([json.loads(line) for line in done("predict", *task, "--json", *words).stdout.splitlines()]
                   for words in (["--input", tmp_path / f"in.{kind}"], ["--", *texts]))  # fmt: skip
    assert [answer["text"] for answer in rows] == texts
    for answer, other in zip(rows, given, strict=True):  # rounding depends on the size of a batch
        assert answer["label"] == other["label"]
        assert answer["probabilities"] == pytest.approx(other["probabilities"], abs=1e-9)


def texts_of(*words):
    return [row[2] for row in printed_rows(*words)]


def test_the_column_of_the_texts_is_named_or_numbered(task, tmp_path):
    table, plain = tmp_path / "tickets.csv", tmp_path / "tickets.txt"
    words = ["predict", *task, "--input"]
    table.write_text("queue,body\nA,hello there\n,\nB,good bye\n")
    refused = run(*words, table)
    assert_refused(refused, "found the columns 'queue', 'body'")
    assert "Name the right one with --text-column." in refused.stderr
    assert texts_of(*words, table, "--text-column", "BODY") == ["hello there", "", "good bye"]
    table.write_text("A,hello there\nB,good bye\n")
    assert texts_of(*words, table, "--text-column", 2) == ["hello there", "good bye"]
    plain.write_text("a,text\nb,hello\n")
    assert texts_of(*words, plain) == ["a,text", "b,hello"]
    assert texts_of(*words, plain, "--text-column", "text") == ["hello"]


def test_a_tsv_file_without_a_header_may_have_labels(task, tmp_path):
    words = ["predict", *task, "--input", tmp_path / "in.tsv"]
    (tmp_path / "in.tsv").write_text('hello there\nthat\'s "it"\n')
    assert texts_of(*words) == ["hello there", 'that\'s "it"']
    (tmp_path / "in.tsv").write_text("hello there\tgreet\ngood bye\tleave\n")
    assert texts_of(*words) == ["hello there", "good bye"]
    assert "there is no header, so the text of a line ends at its last tab" in done(*words).stderr


def test_a_text_that_is_the_name_of_a_file_causes_a_warning(folder, task):
    path = folder / "input.txt"
    (warning,) = done("predict", *task, path, "hello", "x" * 5000).stderr.splitlines()
    advice = f"To read the file, give --input {path}."
    assert warning == f"manymetrics: warning: {path} is a file, but is classified as a text. {advice}"


def test_a_spreadsheet_is_refused_with_advice(model_folder, task, tmp_path):
    (tmp_path / "in.xlsx").write_bytes(b"PK\x03\x04")
    for words in ((*task, "--input", tmp_path / "in.xlsx"), (model_folder, "--examples", tmp_path / "in.xlsx", "hi")):
        assert_refused(run("predict", *words), "spreadsheets are not opened. Save the sheet as CSV")
