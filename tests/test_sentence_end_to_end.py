"""From a bank to answers over a sentence encoder, on one of a few bytes, without torch."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
import manymetrics as mm
from manymetrics.classifier.serving import open_serving, pack_serving
from manymetrics.cli import main
from manymetrics.encode import ProjectionEncoder, SentenceEncoder
from manymetrics.encode.pieces import PieceEncoder
from manymetrics.encode.sentencepiece import unigram_tokenizer
from manymetrics.encode.universal import universal_graph
from tiny_sentence import piece_model, random_universal, vocabulary_of, write_folder

ASKED = ["the crimson here", "some emerald", "azure so very", "", "nothing of it"]


@pytest.fixture(scope="module")
def past(make_bank):
    return make_bank(4, size=12).without_tests()


@pytest.fixture(scope="module")
def new(make_bank):
    """A task of the same family, with other texts."""
    return make_bank(6)["colour-5"]


@pytest.fixture(scope="module")
def folder(past, tmp_path_factory):
    place = tmp_path_factory.mktemp("encoder") / "tiny"
    return write_folder(place, pooling="mean", vocabulary=vocabulary_of(past), width=16)


@pytest.fixture(scope="module")
def recipe(folder):
    return mm.Recipe(
        encoder=str(folder),
        projection_steps=200,
        projection_rate=5e-3,
        own_steps=100,
        own_rate=1e-2,
        p1=0.1,
        p2=0.1,
        shots=2,
        clusters=2,
    )


@pytest.fixture(scope="module")
def model(past, recipe):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mm.learn_metrics(past, recipe)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_metrics_are_projections_of_the_encoder_and_what_it_knows_already(model, past):
    names = [metric.name for metric in model.metrics]
    assert names[-3:] == ["projection", "sentence", "letters"]
    assert set(names[:-3]) <= {"cluster-0", "cluster-1", "other-clusters"}
    base = model.metrics[-2].encoder
    assert isinstance(base, SentenceEncoder)
    for metric in model.metrics[:-2]:
        assert isinstance(metric.encoder, ProjectionEncoder)
        assert metric.encoder.base is base
    taught = {name for metric in model.metrics for name in metric.tasks}
    assert taught == set(past.names) - set(model.held_out)
    assert model.held_out
    assert model.transfer.score == "log-likelihood"


def test_tasks_of_a_family_are_found_to_be_alike(model):
    groups = [{name.split("-")[0] for name in group} for group in model.clusters]
    assert sorted(map(sorted, groups)) == [["animal"], ["colour"]]


def test_a_new_task_is_answered_after_saving_and_loading_too(model, new, tmp_path):
    model.save(tmp_path / "model")
    again = mm.load_model(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    here, there = (one.adapt(new.train.texts, new.train.labels) for one in (model, again))
    assert (here.predict_proba(ASKED) == there.predict_proba(ASKED)).all()
    assert there.predict(ASKED[:3]).tolist() == ["red", "green", "blue"]
    assert there.score(new.test.texts, new.test.labels) > 0.8
    assert "sentence encoder: " in (tmp_path / "model" / "README.md").read_text()


def test_the_shared_projection_learned_which_words_mean_the_same(model):
    """Crimson, scarlet and ruby are random to the encoder, and one label in the bank's tasks."""
    words = mm.Texts(["crimson", "scarlet", "ruby", "emerald", "jade", "olive"])
    together = np.equal.outer(np.arange(6) // 3, np.arange(6) // 3) & ~np.eye(6, dtype=bool)

    def contrast(encoder):
        rows = encoder.encode(words)
        cosines = rows @ rows.T / np.outer(*[np.linalg.norm(rows, axis=1)] * 2)
        return cosines[together].mean() - cosines[~together & ~np.eye(6, dtype=bool)].mean()

    projection, sentence = (metric.encoder for metric in model.metrics[-3:-1])
    assert contrast(projection) > contrast(sentence) + 0.1


def test_a_text_alone_and_among_others_has_the_same_probabilities(model, new):
    classifier = model.adapt(new.train.texts, new.train.labels)
    company = [*ASKED, *new.test.texts]
    together = classifier.predict_proba(company)
    for place, text in enumerate(company):
        np.testing.assert_allclose(classifier.predict_proba([text])[0], together[place], atol=1e-5)


def test_the_number_of_workers_and_the_order_of_tasks_change_no_byte(model, past, recipe, tmp_path):
    model.save(tmp_path / "one")
    mm.learn_metrics(past.tasks[::-1], recipe, workers=2).save(tmp_path / "two")
    assert files(tmp_path / "two") == files(tmp_path / "one")


def test_the_same_call_goes_on_from_its_run_and_does_nothing_again(model, past, recipe, tmp_path):
    told = []
    for _ in range(2):
        told.clear()
        again = mm.learn_metrics(past, recipe, run=tmp_path / "run", report=told.append)
        assert again.fingerprint == model.fingerprint
    stages = {progress.stage: progress for progress in told}
    assert list(stages)[:4] == ["encode", "specialize-projections", "measure-projections", "measure-projected-transfer"]
    assert all(progress.kept == progress.total for progress in told)


def test_labels_are_answered_from_their_names_where_the_bank_says_that_names_are_worth_it(model, past, new, recipe):
    """Of the bank's own labels no text holds the name; here each is called by one of the words that mean it."""
    assert not model.settings.names_count
    names = {"red": "crimson", "green": "emerald", "blue": "azure", "bird": "robin", "fish": "trout", "cat": "lynx"}

    def called(examples):
        return mm.Examples(examples.texts, tuple(names[label] for label in examples.labels))

    telling = [mm.Task(task.name, called(task.train), called(task.valid)) for task in past]
    learned = mm.learn_metrics(telling, recipe)
    assert learned.settings.names_count
    assert set(learned.settings.exponents) == set(learned.settings.exponents_without_names)
    kept = [place for place, label in enumerate(new.train.labels) if label != "blue"]
    few = called(new.train.take(kept))
    classifier = learned.adapt(few.texts, few.labels, descriptions={"azure": "azure"})
    assert classifier.uses_names_
    assert classifier.predict(ASKED[:3]).tolist() == ["crimson", "emerald", "azure"]


def test_nothing_of_it_loads_torch(folder, tmp_path):
    script = f"""
import sys
sys.path.insert(0, {str(__file__).rsplit("/", 1)[0]!r})
from conftest import planted_bank
import manymetrics as mm
from manymetrics.classifier.serving import open_serving, pack_serving
from manymetrics.cli import main
recipe = mm.Recipe(encoder={str(folder)!r}, projection_steps=5, own_steps=2, clusters=2, shots=2)
model = mm.learn_metrics(planted_bank(2), recipe)
print([metric.name for metric in model.metrics][-3:], "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.strip() == "['projection', 'sentence', 'letters'] False", done.stderr


def test_adapt_says_which_tasks_a_new_one_is_like_and_that_its_words_are_strange(model, new, tmp_path):
    model.save(tmp_path / "model")
    rows = [f"{text}\t{label}" for text, label in zip(new.train.texts, new.train.labels, strict=True)]
    (tmp_path / "new.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    (tmp_path / "foreign.tsv").write_text(
        "text\tlabel\n" + "".join(f"wo bleibt {n}\ta\nzurück {n}\tb\n" for n in "xyz")
    )

    def adapt(file):
        asked = ["adapt", str(tmp_path / "model"), "--examples", str(tmp_path / file), "--json"]
        return json.loads(CliRunner().invoke(main, asked, catch_exceptions=False).stdout)

    told = adapt("new.tsv")
    assert told["strange"] is None
    assert told["route"]["said"].startswith("taken for a task like colour-")
    assert {name.split("-")[0] for name in told["route"]["alike"]} == {"colour"}
    assert "of the words are strange to the encoder" in adapt("foreign.tsv")["strange"]
    classifier = model.adapt(new.train.texts, new.train.labels, adaptive=False)
    assert f"This task is {classifier.route_}." in str(classifier.explain("the crimson here"))


def test_on_the_command_line_a_folder_of_another_language_is_learned_with_and_strange_words_are_told(past, tmp_path):
    words = list(vocabulary_of(past))[2:]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "model.onnx").write_bytes(universal_graph(random_universal(rows=len(words))))
    (tmp_path / "own" / "tokenizer.json").write_text(unigram_tokenizer(piece_model({f"▁{word}": -1 for word in words})))
    mm.write_bank(past, tmp_path / "bank")
    knobs = {"encoder": str(tmp_path / "own"), "projection_steps": 20, "own_steps": 5, "shots": 2, "clusters": 2}
    (tmp_path / "own.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in knobs.items()))

    def done(*asked):
        result = CliRunner().invoke(main, [str(word) for word in asked], catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    place = tmp_path / "model"
    done("learn", tmp_path / "bank", "--out", place, "--recipe", tmp_path / "own.toml", "--workers", 1)
    assert {type(one.encoder) for one in mm.load_model(place).metrics} >= {PieceEncoder, ProjectionEncoder}
    for name, texts in {"known": words[:6], "foreign": ["где", "моя", "посылка", "верните", "мне", "деньги"]}.items():
        rows = "".join(f"{text}\t{label}\n" for text, label in zip(texts, "aaabbb", strict=True))
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    told = "100% of the words are strange to the encoder 'own'"
    assert told in done("adapt", place, "--examples", tmp_path / "foreign.tsv")
    assert "strange" not in done("adapt", place, "--examples", tmp_path / "known.tsv")
    assert done("predict", place, "--examples", tmp_path / "foreign.tsv", "моя посылка").startswith("a\t")


def test_each_source_is_held_out_over_the_sentence_encoder(past, recipe, tmp_path):
    found = mm.evaluate_leave_one_out(past, recipe, shots=2, sources=2, run=tmp_path / "run")
    assert len(found.targets) == 2
    assert all("projection" in target.weights and "word-vectors" not in target.weights for target in found.targets)
    again = mm.evaluate_leave_one_out(past, recipe, shots=2, sources=2)
    assert [(one.answered.answers == other.answered.answers).all() for one, other in
            zip(found.targets, again.targets, strict=True)] == [True, True]  # fmt: skip


def test_a_routing_that_does_not_fit_the_model_is_refused_on_loading(model):
    tensors, about = pack_serving(model.serving)
    narrow = {
        **tensors,
        "routing/centres": tensors["routing/centres"][:, :3],
        "routing/names": tensors["routing/names"][:, :3],
    }
    with pytest.raises(mm.DataError, match="do not fit the encoder"):
        open_serving(narrow, about)
    with pytest.raises(mm.DataError, match="of a cluster that no task is routed to"):
        open_serving(tensors, {**about, "routing": {**about["routing"], "count": 1}})
