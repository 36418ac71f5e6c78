from dataclasses import replace

import pytest

from manymetrics.model.origin import model_card
from manymetrics.recipe import Recipe


def test_the_card_says_what_the_model_is(model):
    card = model_card(model.origin)
    assert card.startswith("---\nlibrary_name: manymetrics\n")
    assert "3 metrics, learned from 3 tasks in 2 clusters" in card
    assert "| 0 | 2 | a, b |\n| 1 | 1 | c |" in card
    assert "- bank: `f00d`" in card


@pytest.mark.parametrize(
    ("recipe", "line"),
    [
        (Recipe.fast(vectors="random"), "- word vectors: random; seed 0\n"),
        (Recipe(encoder="bge-small", seed=3), "- sentence encoder: bge-small; seed 3\n"),
    ],
)
def test_the_card_says_which_encoder_a_model_has(model, recipe, line):
    assert line in model_card(replace(model.origin, recipe=recipe))


def test_names_of_tasks_are_no_markup_in_the_card(model):
    names = ("<script>x</script>", "a | b", "[link](http://example.org)")
    clusters = replace(model.origin.clusters, names=names)
    card = model_card(replace(model.origin, clusters=clusters))
    assert "<script>" not in card
    assert "| 0 | 2 | &lt;script&gt;x&lt;/script&gt;, a \\| b |" in card
    assert "[link](" not in card
