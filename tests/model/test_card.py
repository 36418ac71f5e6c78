from dataclasses import replace

import numpy as np

from manymetrics.model.card import model_card
from manymetrics.recipe import Recipe
from manymetrics.weigh import MixSettings


def test_the_card_says_what_the_model_is(model):
    card = model_card(model.origin)
    assert card.startswith("---\nlibrary_name: manymetrics\n")
    assert "4 metrics, learned from 3 tasks in 2 clusters" in card
    assert "| 0 | 2 | a, b |\n| 1 | 1 | c |" in card
    assert "- bank: `f00d`" in card
    assert "word vectors: random; window 3, 12 filters; seed 0" in card


def test_the_card_says_how_metrics_are_mixed(model):
    numbers = {"prior_shots": 15.0, "likelihood_temperature": 1.5, "threshold": -np.inf}
    settings = MixSettings({"learned": 0.4, "frozen": 0.6}, **numbers)
    card = model_card(replace(model.origin, settings=settings))
    assert "learned 0.4, frozen 0.6; prior worth 15 shots, likelihood temperature\n  1.5, threshold -inf" in card
    assert "all kinds alike" in model_card(replace(model.origin, settings=MixSettings()))
    exponents = {"learned": (1.0, 0.0, 0.0), "regression": (0.0, float(np.log(2) / np.log(5)), 0.0)}
    card = model_card(replace(model.origin, settings=MixSettings(exponents=exponents)))
    assert "learned 58%, regression 42% with 5 examples of each of 10 labels; prior worth" in card  # e and 2


def test_the_card_says_which_sentence_encoder_a_model_stands_on(model):
    card = model_card(replace(model.origin, recipe=Recipe(encoder="bge-small", seed=3)))
    assert "- sentence encoder: bge-small; seed 3\n" in card
    assert "word vectors" not in card


def test_names_of_tasks_are_no_markup_in_the_card(model):
    names = ("<script>x</script>", "a | b", "[link](http://example.org)")
    clusters = replace(model.origin.clusters, names=names)
    card = model_card(replace(model.origin, clusters=clusters, centres=None))
    assert "<script>" not in card
    assert "| 0 | 2 | &lt;script&gt;x&lt;/script&gt;, a \\| b |" in card
    assert "[link](" not in card
