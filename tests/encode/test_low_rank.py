"""Low-rank factors of a sentence encoder, trained on tasks and on shots, on a BERT of a few bytes."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")
import torch

import manymetrics as mm
from manymetrics.encode import low_rank
from manymetrics.encode.low_rank import LowRankRepresentation, n_episodes, validation_loss
from manymetrics.encode.settings import LowRankTraining
from manymetrics.encode.training.low_rank import LabelledTask, train_on_shots, train_on_tasks
from manymetrics.encode.training.transformer import LowRankTransformer
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.specialize.cluster_metrics import make_metric
from tiny_sentence import bert_encoder

COLOURS = ("red", "green", "blue")
MORE = ("now", "please", "again", "here", "there")
VOCABULARY = {word: number for number, word in enumerate(("[CLS]", "[UNK]", *COLOURS, *MORE, "colour"))}
TEXTS = tuple(f"{colour} {more}" for colour in COLOURS for more in MORE)
TASK = LabelledTask(TEXTS, np.repeat(np.arange(3), 5), COLOURS)
TRAINING = LowRankTraining(steps=30, learning_rate=1e-2, rank=2, frozen_share=0.5)


@pytest.fixture(scope="module", params=["cls", "mean"])
def encoder(request):
    return bert_encoder(VOCABULARY, pooling=request.param)


def separation(encoder):
    """How much more similar texts are to those of their own colour than to others."""
    rows = encoder.encode(TEXTS)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines, same = rows @ rows.T, np.equal.outer(TASK.numbers, TASK.numbers)
    return cosines[same & ~np.eye(15, dtype=bool)].mean() - cosines[~same].mean()


def test_torch_gives_the_embeddings_of_the_runtime_in_any_batch_with_and_without_factors(encoder):
    factors = train_on_tasks(encoder, [TASK], TRAINING, rng=np.random.default_rng(0))
    texts = ["red please", "blue", "green now here there again"]
    for start in (None, factors):
        transformer = LowRankTransformer(encoder, n_frozen=1, rank=2, start=start, seed=0)
        with torch.no_grad():
            together = transformer.embed(texts, max_tokens=32).numpy()
            alone = np.concatenate([transformer.embed([text], max_tokens=32).numpy() for text in texts])
        served = (encoder if start is None else encoder.with_factors(start)).encode(texts)
        assert ((together * served).sum(axis=1) / np.linalg.norm(served, axis=1)).min() > 0.998
        np.testing.assert_allclose(together, alone, atol=1e-5)


def test_the_cached_output_of_the_lower_layers_gives_the_same_embeddings_and_is_computed_once(encoder, monkeypatch):
    texts, others = ["red please", "blue", "blue"], ["blue", "green now here"]
    plain, cached = (
        LowRankTransformer(encoder, n_frozen=1, rank=2, start=None, seed=0, cache=cache) for cache in (False, True)
    )
    with torch.no_grad():
        for batch in (texts, others, texts):
            expected = plain.embed(batch, max_tokens=32).numpy()
            np.testing.assert_allclose(cached.embed(batch, max_tokens=32).numpy(), expected, atol=1e-5)
        monkeypatch.setattr(cached, "_lower_layers", None)  # every text is cached
        cached.embed(texts + others, max_tokens=32)
    assert len(cached.lower_cache) == 3


@pytest.mark.parametrize("train", ["tasks", "shots", "shots without names"])
def test_training_brings_the_texts_of_a_label_together_and_leaves_the_lower_layers(encoder, train):
    rng = np.random.default_rng(0)
    if train == "tasks":
        factors = train_on_tasks(encoder, [TASK], TRAINING, rng=rng)
    else:
        factors = train_on_shots(encoder, TASK, TRAINING, rng=rng, use_names=train == "shots")
    assert {name.split(".")[2] for name in factors.pairs} == {"1"}
    assert separation(encoder.with_factors(factors)) > separation(encoder) + 0.1


def test_the_same_seed_gives_the_same_bits_whatever_torch_was_set_to(encoder):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        trained = []
        for count in (1, 2):
            torch.set_num_threads(count)
            trained.append(train_on_shots(encoder, TASK, TRAINING, rng=np.random.default_rng(3)).tensors())
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert (torch.get_rng_state() == state).all()
    assert all((trained[0][name] == trained[1][name]).all() for name in trained[0])
    other = train_on_shots(encoder, TASK, TRAINING, rng=np.random.default_rng(4)).tensors()
    assert any((trained[0][name] != other[name]).any() for name in other)


def test_steps_on_shots_begin_with_the_factors_of_the_encoder(encoder):
    tuned = encoder.with_factors(train_on_tasks(encoder, [TASK], TRAINING, rng=np.random.default_rng(0)))
    still = train_on_shots(tuned, TASK, replace(TRAINING, steps=0), rng=np.random.default_rng(0))
    for name, (a, b) in tuned.factors.pairs.items():
        np.testing.assert_allclose(still.pairs[name][0], a, atol=1e-3)
        np.testing.assert_allclose(still.pairs[name][1], b, atol=1e-3)


def test_of_many_labels_neighbouring_ones_are_compared_in_a_step(encoder):
    seen = []
    few = LowRankTraining(steps=4, rank=2, max_labels=2, max_shots=6)
    train_on_shots(encoder, TASK, few, rng=np.random.default_rng(0), on_step=lambda *progress: seen.append(progress))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_tasks_without_episodes_are_refused(encoder):
    alone = LabelledTask(("red", "blue"), np.arange(2), ("red", "blue"))
    with pytest.raises(NotEnoughExamples, match="two labels that have two train examples each"):
        train_on_tasks(encoder, [alone], TRAINING, rng=np.random.default_rng(0))


def colour_task(name, more):
    texts = [f"{colour} {word}" for colour in COLOURS for word in more]
    return mm.Task(name, mm.Examples(tuple(texts), tuple(text.split()[0] for text in texts)))


def test_factors_are_used_where_they_make_the_answers_of_held_out_tasks_more_likely(encoder):
    representation = LowRankRepresentation(encoder, TRAINING)
    tasks = [colour_task("a", ("now", "please", "again")), colour_task("b", ("here", "there", "now"))]
    episode = representation.episode(colour_task("c", ("again", "there", "please", "here")), seed=0)
    fitted = representation.fit(tasks, [episode], start=None, rng=np.random.default_rng(0))
    assert fitted.n_steps == n_episodes(2) == 40
    assert fitted.validation_loss < validation_loss([encoder], [episode])[0]
    assert fitted.validation_loss == validation_loss([encoder, representation.encoder(fitted)], [episode])[0]
    assert representation.score(fitted, episode) > representation.score(mm.Fitted({}), episode)
    contradicting = mm.Task("d", mm.Examples(TEXTS, tuple("xyz"[number % 3] for number in range(15))))
    wrong = representation.episode(contradicting, seed=0)
    assert representation.fit(tasks, [wrong], start=None, rng=np.random.default_rng(0)).n_steps == 0


def test_without_held_out_tasks_factors_are_used_and_a_single_task_has_none(encoder):
    representation = LowRankRepresentation(encoder, TRAINING)
    tasks = [colour_task("a", ("now", "please", "again")), colour_task("b", ("here", "there", "now"))]
    assert representation.fit(tasks, [], start=None, rng=np.random.default_rng(0)).n_steps == 40
    assert representation.fit(tasks[:1], [], start=None, rng=np.random.default_rng(0)).n_steps == 0
    assert representation.encoder(mm.Fitted({})) is encoder


def test_the_mean_of_two_cosines_is_the_cosine_of_joined_embeddings(encoder):
    episode = LowRankRepresentation(encoder, TRAINING).episode(colour_task("c", ("again", "there", "please")), seed=0)
    alone, twice = validation_loss([encoder], [episode]), validation_loss([encoder, encoder], [episode])
    assert alone == pytest.approx(twice, abs=1e-5)


def test_the_recipe_refuses_word_vectors():
    assert mm.Recipe.tuned().representation == "low-rank"
    with pytest.raises(RecipeError, match="trained over a sentence encoder"):
        mm.Recipe(representation="low-rank", encoder="words")


def test_where_all_tasks_share_their_labels_an_encoder_is_trained_below_a_classifier_over_them(encoder, monkeypatch):
    monkeypatch.setattr(low_rank, "BY_LABELS", replace(TRAINING, queries=8))
    words = (("now", "please", "again"), ("here", "there", "now"), ("please", "there", "again"))
    bank = mm.TaskBank(tuple(colour_task(name, some) for name, some in zip("abc", words, strict=True)))
    shared = mm.Recipe.tuned().phases(mm.SharedData(bank, encoder)).shared
    episode = shared.episode(colour_task("d", ("now", "here", "please", "there")), seed=0)
    fitted = shared.fit(bank.tasks, [episode], start=None, rng=np.random.default_rng(0))
    assert fitted.classes == bank.tasks[0].labels
    np.testing.assert_allclose(fitted.tensors["prior"], 1 / 3)
    assert fitted.validation_loss == -shared.score(fitted, episode) < 0.3
    metric = make_metric("x", "tuned", shared, fitted, tasks=("a",))
    texts = mm.encode.EmbeddedTexts([f"{colour} here" for colour in COLOURS])
    answered = metric.learn(texts, np.arange(3), fitted.classes).probabilities(texts).argmax(axis=1)
    assert [fitted.classes[number] for number in answered] == list(COLOURS)
    wrong = replace(episode, query=mm.Examples(episode.query.texts, ("red",) * len(episode.query), COLOURS))
    assert shared.fit(bank.tasks, [wrong], start=None, rng=np.random.default_rng(0)).n_steps == 0
    mixed = mm.TaskBank((bank.tasks[0], mm.Task("e", mm.Examples(("red", "blue"), ("x", "y")))))
    assert mm.Recipe.tuned().phases(mm.SharedData(mixed, encoder)).shared.kind == "projection"
