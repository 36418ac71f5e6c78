import tomllib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import RecipeError
from manymetrics.recipe import Recipe


def test_a_recipe_comes_back_from_its_file(tmp_path):
    recipe = Recipe(vectors="random", clusters=4, learning_rate=1e-9, objective="matching", seed=2**63 - 1)
    recipe.save(tmp_path / "recipe.toml")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


def test_knobs_left_to_be_chosen_are_comments():
    assert "# clusters is chosen from the data" in Recipe().as_toml()
    assert "clusters" not in tomllib.loads(Recipe().as_toml())


def test_every_knob_is_explained_with_what_it_can_be_set_to():
    told = Recipe(width=9, clusters=4).as_toml(explained=True)
    assert "# Filters of an encoder.\n# A whole number from 1 to 10,000.\nwidth = 9\n" in told
    assert "# Tokens that a filter of an encoder sees at once.\n# An odd number from 1 to 99.\n" in told
    assert "# One of auto, matching, prototypical, shared-label.\nobjective" in told
    assert "True or false, in small letters.\nlearn_words = true\n" in told
    parts = told.strip().split("\n\n")
    assert len(parts) == len(fields(Recipe))
    unsaid = [part for part in parts if not part.startswith("# ") or "\n" not in part]
    assert unsaid == []
    assert max(map(len, told.splitlines())) <= 120
    assert Recipe.from_dict(tomllib.loads(told)) == Recipe(width=9, clusters=4)


@given(
    st.builds(
        Recipe,
        vectors=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        width=st.integers(1, 10_000),
        p1=st.floats(0, 10),
        pairs=st.none() | st.integers(1, 10**12),
        sparsity=st.none() | st.floats(1e-9, 1e9),
        learning_rate=st.floats(1e-9, 10),
    )
)
def test_every_recipe_comes_back_from_its_toml(recipe):
    assert Recipe.from_dict(tomllib.loads(recipe.as_toml())) == recipe


def test_what_a_file_does_not_name_keeps_its_default(tmp_path):
    (tmp_path / "r.toml").write_text("clusters = 5\n")
    assert Recipe.load(tmp_path / "r.toml") == Recipe(clusters=5)


def test_an_unknown_knob_is_refused_with_the_nearest_one(tmp_path):
    (tmp_path / "r.toml").write_text("cluster = 5\n")
    with pytest.raises(RecipeError, match=r"There is no knob 'cluster' in .*r\.toml\. Did you mean 'clusters'\?"):
        Recipe.load(tmp_path / "r.toml")
    with pytest.raises(
        RecipeError, match=r"There is no knob 'zzz' in the recipe\. Known are encoder, tuning_steps, vectors, window"
    ):
        Recipe.from_dict({"zzz": 1})


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"width": 0}, r"The knob width is 0\. Set it to a number from 1 to 10,000\."),
        ({"task_dropout": 1.0}, r"The knob task_dropout is 1\.0\. Set it to a number from 0 to 0\.95\."),
        ({"ways": True}, "The knob ways is True"),
        ({"width": "wide"}, "The knob width is 'wide'"),
        ({"batch": None}, "The knob batch is None"),
        ({"p1": float("nan")}, "The knob p1 is nan"),
        ({"width": 10.0}, r"The knob width is 10\.0\. Set it to a whole number\."),
        ({"clusters": 2.5}, r"The knob clusters is 2\.5\. Set it to a whole number\."),
        ({"pairs": 99.5}, r"The knob pairs is 99\.5\. Set it to a whole number\."),
        ({"window": 4}, r"The knob window is 4\. Set it to an odd number"),
        (
            {"score": "f1"},
            r"The knob score is 'f1'\. Choose one of auto, accuracy, logme",
        ),
        ({"objective": ""}, "Choose one of auto, matching, prototypical, shared-label"),
        ({"vectors": 5}, r"The knob vectors is 5\. Set it to a name or a path, in quotes\."),
        ({"encoder": None}, r"The knob encoder is None\. Set it to a name or a path, in quotes\."),
        ({"own_steps": 0}, r"The knob own_steps is 0\. Set it to a number from 1 to 1,000,000\."),
        ({"projection_dropout": 1.0}, r"The knob projection_dropout is 1\.0\. Set it to a number from 0 to 0\.95\."),
        ({"learn_words": 1}, r"The knob learn_words is 1\. Set it to true or false\."),
    ],
)
def test_a_knob_out_of_range_says_its_range(knobs, text):
    with pytest.raises(RecipeError, match=text):
        Recipe(**knobs)


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    (tmp_path / "r.toml").write_text("clusters: 5\n")
    with pytest.raises(RecipeError, match=r"r\.toml is not TOML: .* Write one knob a line, as in: clusters = 5"):
        Recipe.load(tmp_path / "r.toml")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"Cannot read the recipe .*no\.toml.*Give the path of a TOML file\."):
        Recipe.load(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b'vectors = "caf\xe9"\n')
    with pytest.raises(RecipeError, match=r"Cannot read the recipe .*latin\.toml"):
        Recipe.load(tmp_path / "latin.toml")


def test_each_stage_gets_the_knobs_it_needs():
    recipe = Recipe(width=9, window=3, task_dropout=0.1, metric_dropout=0.3, task_steps=7, metric_steps=8, ways=4)
    task, metric = recipe.task_training(), recipe.metric_training()
    assert (task["convolution"].width, task["convolution"].dropout, task["training"].steps) == (9, 0.1, 7)
    assert (metric["convolution"].dropout, metric["training"].steps, metric["training"].ways) == (0.3, 8, 4)
    assert task["convolution"].word_dropout == 0


def test_a_recipe_nested_too_deeply_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "deep.toml").write_text("clusters = " + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(RecipeError, match=r"deep\.toml is not TOML"):
        Recipe.load(tmp_path / "deep.toml")


def test_recipes_have_names():
    assert Recipe.named("default") == Recipe()
    assert Recipe.named("fast") == Recipe.fast()
    assert Recipe.fast().encoder == "words"
    paper = Recipe.named("paper")
    assert paper == Recipe.paper()
    assert (paper.encoder, paper.vectors, paper.score, paper.learn_words) == ("words", "glove-100d", "accuracy", False)
    assert Recipe.fast(width=9) == replace(Recipe.fast(), width=9)
    assert Recipe.paper(vectors="random").vectors == "random"
    with pytest.raises(TypeError, match="widht"):
        Recipe.fast(widht=9)


def test_projections_get_the_knobs_they_need():
    recipe = Recipe(
        projection_steps=1000, projection_rate=0.01, projection_dropout=0.3, own_steps=7, own_rate=0.02, task_steps=1
    )
    training, own = recipe.projection_training(), recipe.own_training()
    assert [training[name].steps for name in ("shared", "cluster")] == [1000, 250]
    assert {(one.learning_rate, one.dropout) for one in training.values()} == {(0.01, 0.3)}
    assert all(0 < one.check_every <= one.steps for one in training.values())
    assert (own.steps, own.check_every, own.learning_rate, own.dropout) == (7, 7, 0.02, 0.3)
    assert Recipe(projection_steps=1).projection_training()["cluster"].steps == 1
