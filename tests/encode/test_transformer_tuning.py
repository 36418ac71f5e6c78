"""A sentence encoder that is tuned, on a BERT of a few bytes."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")
import torch

from manymetrics.encode.projection import TaskTexts
from manymetrics.encode.settings import ProjectionTraining, TuningSettings
from manymetrics.encode.tuning import Transformer, tune, with_weights
from manymetrics.errors import InputError
from manymetrics.values import Texts
from tiny_sentence import bert_encoder

WORDS = ("red", "green", "blue", "now", "please", "again", "here", "there", "colour")
VOCABULARY = {word: place for place, word in enumerate(("[CLS]", "[UNK]", *WORDS))}
SAID = tuple(f"{colour} {more}" for colour in WORDS[:3] for more in WORDS[3:8])
TASK = TaskTexts(SAID, [np.arange(5) + 5 * place for place in range(3)], WORDS[:3])
SETTINGS = TuningSettings(steps=40, learning_rate=3e-3, fixed=0.5, episode=ProjectionTraining(queries=12, dropout=0.1))


@pytest.fixture(scope="module", params=["cls", "mean"])
def encoder(request):
    return bert_encoder(VOCABULARY, pooling=request.param)


def spread(encoder):
    """How much nearer texts lie to those of their own colour than to others."""
    rows = encoder.encode(Texts(SAID))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines, own = rows @ rows.T, np.equal.outer(np.arange(15) // 5, np.arange(15) // 5)
    return cosines[own & ~np.eye(15, dtype=bool)].mean() - cosines[~own].mean()


def test_the_rows_of_the_tensors_are_those_of_the_graph_in_any_company(encoder):
    transformer = Transformer(encoder)
    assert transformer.heads == 2
    asked = ["red please", "blue", "green now here there again"]
    with torch.no_grad():
        together = transformer.rows(asked).numpy()
        alone = np.concatenate([transformer.rows([text]).numpy() for text in asked])
    own = encoder.encode(Texts(asked))
    np.testing.assert_allclose(together, own / np.linalg.norm(own, axis=1, keepdims=True), atol=2e-3)
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_tuning_brings_the_texts_of_a_label_together_and_leaves_the_lower_layers(encoder):
    moved = tune(encoder, [TASK], SETTINGS, share=1.0, rng=np.random.default_rng(0))
    assert all(name.startswith("encoder.layer.1.") for name in moved)
    tuned = with_weights(encoder, moved)
    assert spread(tuned) > spread(encoder) + 0.1
    assert (tuned.name, tuned.pooling) == ("tiny-bert-tuned", encoder.pooling)
    assert "Tuned on the tasks of the bank" in tuned.card


def test_the_same_seed_gives_the_same_bits_whatever_torch_was_set_to(encoder):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(tune(encoder, [TASK], SETTINGS, share=0.5, rng=np.random.default_rng(3)))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert (torch.get_rng_state() == state).all()
    assert all((found[0][name] == found[1][name]).all() for name in found[0])
    other = tune(encoder, [TASK], SETTINGS, share=0.5, rng=np.random.default_rng(4))
    assert any((found[0][name] != other[name]).any() for name in other)


def test_tuning_goes_on_from_moved_weights_and_a_bank_without_episodes_moves_nothing(encoder):
    moved = tune(encoder, [TASK], SETTINGS, share=1.0, rng=np.random.default_rng(0))
    none = TaskTexts(("red",), [], ())
    still = tune(encoder, [none], SETTINGS, share=1.0, rng=np.random.default_rng(0), moved=moved)
    assert all((still[name] == moved[name]).all() for name in moved)


def test_an_encoder_whose_weights_do_not_give_its_rows_is_refused(encoder, monkeypatch):
    monkeypatch.setattr("manymetrics.encode.tuning.HEADS", (16,))
    monkeypatch.setattr("manymetrics.encode.tuning.ALIKE", 0.99999)
    with pytest.raises(InputError, match="The weights of 'tiny-bert' do not give its rows, so it cannot be tuned"):
        Transformer(encoder)
