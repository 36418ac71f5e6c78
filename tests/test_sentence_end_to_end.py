"""From a bank to answers over a sentence encoder, on one of a few bytes, without torch."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from command_line import assert_refused, done, printed_json, printed_rows, run, write_shots
from manymetrics.encode import ProjectionEncoder, SentenceEncoder
from manymetrics.evaluation.baselines import frozen_regression
from tiny_sentence import piece_tokenizer, vocabulary_of, write_bert_folder, write_folder

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
    return write_folder(place, pooling="mean", vocabulary=vocabulary_of(past), width=64)


@pytest.fixture(scope="module")
def recipe(folder):
    steps = {"projection_steps": 200, "projection_rate": 5e-3, "own_steps": 100, "own_rate": 1e-2}
    return mm.Recipe(encoder=str(folder), **steps, p1=0.1, p2=0.1, shots=2, clusters=2)


@pytest.fixture(scope="module")
def reports():
    """What learning the model reported."""
    return []


@pytest.fixture(scope="module")
def model(past, recipe, reports):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mm.learn_metrics(past, recipe, report=reports.append)


def test_the_metrics_are_projections_of_the_encoder_and_what_it_knows_already(model, past):
    names = [metric.name for metric in model.metrics]
    assert (names[0], names[-1]) == ("projection", "sentence")
    assert set(names[1:-1]) <= {"cluster-0", "cluster-1"}
    base = model.metrics[-1].encoder
    assert isinstance(base, SentenceEncoder)
    for metric in model.metrics[:-1]:
        assert isinstance(metric.encoder, ProjectionEncoder)
        assert metric.encoder.base is base
    taught = {name for metric in model.metrics for name in metric.tasks}
    assert taught == set(past.names) - set(model.held_out)
    assert model.held_out
    assert model.transfer.score == "log-likelihood"
    groups = [{name.split("-")[0] for name in group} for group in model.clusters]
    assert sorted(map(sorted, groups)) == [["animal"], ["colour"]], "tasks of a family are found similar"


def test_metrics_and_encoders_are_shown_in_a_line(model):
    assert repr(model.metrics[0]).startswith("<Metric 'projection': tuned, ")
    assert repr(model.metrics[-1]).endswith(" 0 tasks, <SentenceEncoder 'tiny'>>")
    assert max(len(repr(metric)) for metric in model.metrics) < 200


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
    words = ["crimson", "scarlet", "ruby", "emerald", "jade", "olive"]
    together = np.equal.outer(np.arange(6) // 3, np.arange(6) // 3) & ~np.eye(6, dtype=bool)

    def contrast(encoder):
        rows = encoder.encode(words)
        cosines = rows @ rows.T / np.outer(*[np.linalg.norm(rows, axis=1)] * 2)
        return cosines[together].mean() - cosines[~together & ~np.eye(6, dtype=bool)].mean()

    projection, sentence = (model.metrics[place].encoder for place in (0, -1))
    assert contrast(projection) > contrast(sentence) + 0.1


def test_a_text_alone_and_among_others_has_the_same_probabilities(model, new):
    classifier = model.adapt(new.train.texts, new.train.labels)
    company = [*ASKED, *new.test.texts]
    together = classifier.predict_proba(company)
    for place, text in enumerate(company):
        np.testing.assert_allclose(classifier.predict_proba([text])[0], together[place], atol=1e-5)


def test_workers_the_order_of_tasks_and_a_resumed_run_change_no_byte(model, past, recipe, tmp_path):
    model.save(tmp_path / "one")
    mm.learn_metrics(past.tasks[::-1], recipe, workers=2, run=tmp_path / "run").save(tmp_path / "two")
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]
    reports = []
    assert mm.learn_metrics(past, recipe, run=tmp_path / "run", report=reports.append).fingerprint == model.fingerprint
    latest = {report.stage: report for report in reports if not report.stage.startswith(("partition", "weigh"))}
    assert [stage for stage, report in latest.items() if report.kept < report.total] == []


def test_names_of_tasks_and_the_order_of_their_examples_change_no_answer(model, past, new, recipe):
    def permuted(examples):
        return examples.take(np.random.default_rng(0).permutation(len(examples)))

    renamed = [
        replace(task, name=f"{9 - number} {task.name}", train=permuted(task.train), valid=permuted(task.valid))
        for number, task in enumerate(past)
    ]
    other = mm.learn_metrics(mm.TaskBank(tuple(renamed)), recipe)
    answers = [one.adapt(new.train.texts, new.train.labels).predict_proba(ASKED) for one in (model, other)]
    np.testing.assert_allclose(*answers, atol=1e-6)


def test_a_label_without_examples_is_answered_from_its_name(past, new, recipe):
    """Of the bank's own labels no text holds the name; here each is called by one of the words that mean it."""
    names = {"red": "crimson", "green": "emerald", "blue": "azure", "bird": "robin", "fish": "trout", "cat": "lynx"}

    def called(examples):
        return mm.Examples(examples.texts, tuple(names[label] for label in examples.labels))

    telling = [mm.Task(task.name, called(task.train), called(task.valid)) for task in past]
    learned = mm.learn_metrics(telling, recipe)
    kept = [place for place, label in enumerate(new.train.labels) if label != "blue"]
    few = called(new.train.take(kept))
    classifier = learned.adapt(few.texts, few.labels, descriptions={"azure": "azure"})
    assert classifier.uses_names_
    assert classifier.predict(ASKED[:3]).tolist() == ["crimson", "emerald", "azure"]


def test_adapt_says_which_tasks_a_new_one_is_like_and_that_its_words_are_strange(model, new, tmp_path):
    model.save(tmp_path / "model")
    write_shots(tmp_path / "new.tsv", new.train)
    (tmp_path / "foreign.tsv").write_text("".join(f"wo bleibt {n}\ta\nzurück {n}\tb\n" for n in "xyz"))
    known, foreign = (
        printed_json("adapt", tmp_path / "model", "--examples", tmp_path / f"{name}.tsv") for name in ("new", "foreign")
    )
    assert known["strange"] is None
    assert known["assignment"]["summary"].startswith("assigned to the cluster of colour-")
    assert {name.split("-")[0] for name in known["assignment"]["similar_tasks"]} == {"colour"}
    assert "of the words are unfamiliar to the encoder" in foreign["strange"]
    classifier = model.adapt(new.train.texts, new.train.labels, adaptive=False)
    assert f"This task is {classifier.assignment_}." in str(classifier.explain("the crimson here"))


def test_the_command_line_learns_with_an_encoder_of_another_language_and_reports_unfamiliar_words(past, tmp_path):
    words, place, own = list(vocabulary_of(past))[2:], tmp_path / "model", tmp_path / "own"
    tokenizer = piece_tokenizer({f"▁{word}": -1.0 for word in words})
    write_bert_folder(own, vocabulary=range(len(words) + 3), tokenizer=tokenizer)
    (own / "1_Pooling" / "config.json").unlink()
    mm.write_bank(past, tmp_path / "bank")
    (tmp_path / "own.toml").write_text("projection_steps = 20\nown_steps = 5\nshots = 2\nclusters = 2\n")
    asked = ["learn", tmp_path / "bank", "--out", place, "--recipe", tmp_path / "own.toml", "--workers", 1]
    asked += ["--encoder", own]
    refused = run(*asked)
    assert_refused(refused, "own does not say how the rows of tokens are pooled")
    assert_refused(refused, "(--pooling on the command line)")
    done(*asked, "--pooling", "cls")
    model = mm.load_model(place)
    assert (model.origin.recipe.encoder, model.origin.recipe.pooling) == (str(own), "cls")
    assert {type(metric.encoder) for metric in model.metrics} >= {SentenceEncoder, ProjectionEncoder}
    for name, texts in {"known": words[:6], "foreign": ["где", "моя", "посылка", "верните", "мне", "деньги"]}.items():
        write_shots(tmp_path / f"{name}.tsv", mm.Examples(texts, "aaabbb"))
    told = "100% of the words are unfamiliar to the encoder 'own'"
    assert told in done("adapt", place, "--examples", tmp_path / "foreign.tsv").stdout
    assert "unfamiliar" not in done("adapt", place, "--examples", tmp_path / "known.tsv").stdout
    assert printed_rows("predict", place, "--examples", tmp_path / "known.tsv", words[0])[0][0] == "a"


def test_each_source_is_held_out_over_the_sentence_encoder(past, recipe, tmp_path):
    found, again = (mm.evaluate_leave_one_out(past, recipe, shots=2, sources=2, run=run) for run in (tmp_path, None))
    assert all("projection" in target.weights and "word-vectors" not in target.weights for target in found.targets)
    assert [(one.answered.answers == other.answered.answers).all() for one, other in
            zip(found.targets, again.targets, strict=True)] == [True, True]  # fmt: skip


def test_an_assignment_that_does_not_fit_the_model_is_refused(model, new):
    predictor, assigner = model.predictor, model.predictor.assigner
    narrow = replace(assigner, centroids=assigner.centroids[:, :3], names=assigner.names[:, :3])
    with pytest.raises(mm.ModelError, match="the cluster assignment does not fit its encoder"):
        mm.MetricModel(replace(predictor, assigner=narrow), model.origin).adapt(new.train.texts, new.train.labels)
    with pytest.raises(mm.DataError, match="of a cluster that no task is assigned to"):
        replace(predictor, assigner=replace(assigner, clusters=assigner.clusters * 0, count=1))


def test_a_client_with_two_examples_is_in_no_cluster_and_is_named(past, recipe):
    two = mm.Task("two-examples", mm.Examples(["ruby", "jade"], ("red", "green")))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = mm.learn_metrics(mm.TaskBank((*past.tasks, two)), recipe)
    assert sorted(model.clusters.names) == sorted(model.transfer.names) == sorted(past.names)
    assert [one for one in told if "two-examples" in str(one.message)]
    assert not [one for one in told if issubclass(one.category, RuntimeWarning)]


@pytest.mark.usefixtures("model")
def test_every_stage_of_learning_reports_how_far_it_is(reports):
    stages = list(dict.fromkeys(report.stage for report in reports))
    assert stages[:4] == ["encode", "measure-models", "measure-transfer", "partition"]
    assert {"weigh-assignment", "weigh-scope"} <= {*stages}
    for stage in stages:
        own = [report for report in reports if report.stage == stage]
        assert own[0].seconds == 0
        assert own[-1].done == own[-1].total > 0


def test_an_evaluation_compares_with_regressions_on_the_frozen_encoder_and_on_the_shared_metric(model, new):
    reports = []
    found = mm.evaluate(model, mm.TaskBank((new,)), report=reports.append)
    frozen, shared = found.baselines()
    assert frozen.method == "logistic regression on the frozen encoder"
    assert shared.method == "logistic regression on the shared metric"
    assert shared.gain.value == pytest.approx(found.mean()["accuracy"].value - shared.accuracy.value)
    assert shared.gain.low <= shared.gain.value <= shared.gain.high
    answers = frozen_regression(model.metrics[0].encoder, balanced=True, names=True)(new)
    assert [new.labels[place] for place in found.targets[0].baselines[shared.method].answers] == answers
    assert [(report.stage, report.done, report.total) for report in reports[-1:]] == [("evaluate", 1, 1)]
