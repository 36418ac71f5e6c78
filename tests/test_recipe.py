import tomllib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import random_vectors
from manymetrics.errors import RecipeError
from manymetrics.learn import learn_metrics
from manymetrics.recipe import ConvolutionSettings, Recipe
from manymetrics.values import Examples, SharedData, Task, TaskBank

WORDS = random_vectors(rows=16, dimensions=4)
BANK = TaskBank(tuple(Task(name, Examples(("a", "b"), ("x", name))) for name in ("one", "two")))


def handed_out(recipe):
    """What the stages get."""
    phases = recipe.phases(SharedData(BANK.without_tests(), WORDS))
    shared = phases.shared and phases.shared.spec()
    return phases.single.spec(), shared, phases.cluster.spec()


def test_every_setting_is_explained_with_what_it_can_be_set_to():
    recipe = Recipe.paper(width=9, clusters=4)
    told = recipe.as_toml(explained=True)
    assert "# Filters of an encoder.\n# An integer from 1 to 10,000.\nwidth = 9" in told
    assert "# Tokens that a filter covers.\n# An odd number from 1 to 99.\n" in told
    assert "# One of auto, matching, prototypical.\nobjective" in told
    assert "# Only with word vectors.\nvectors" in told
    parts = [part.removeprefix("[convolution]\n").strip() for part in told.strip().split("\n\n")]
    parts = [part for part in parts if part != "[convolution]"]
    assert len(parts) == len(fields(Recipe)) - 1 + len(fields(ConvolutionSettings))
    assert len(fields(Recipe)) <= 20
    assert [part for part in parts if not part.startswith("# ") or "\n" not in part] == []
    assert max(map(len, told.splitlines())) <= 120
    assert "# clusters is chosen from the data" in Recipe().as_toml(), "what is left open is a comment"
    assert "clusters" not in tomllib.loads(Recipe().as_toml())


@given(
    st.builds(
        Recipe,
        encoder=st.just("words"),
        representation=st.just("convolution"),
        vectors=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        convolution=st.builds(ConvolutionSettings, width=st.integers(1, 10_000), learning_rate=st.floats(1e-9, 10)),
        p1=st.floats(0, 10),
        pairs=st.none() | st.integers(1, 10**12),
        sparsity=st.none() | st.floats(1e-9, 1e9),
        seed=st.integers(0, 2**63 - 1),
    )
)
def test_every_recipe_comes_back_from_its_toml(recipe):
    assert Recipe.from_dict(tomllib.loads(recipe.as_toml())) == recipe


@pytest.mark.parametrize("name", ["default", "tuned", "fast", "paper"])
def test_every_named_recipe_comes_back_from_its_file(name, tmp_path):
    recipe = Recipe.named(name)
    (tmp_path / "recipe.toml").write_text(recipe.as_toml(explained=True), encoding="utf-8")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("cluster = 5\n", r"There is no setting 'cluster' in .*r\.toml\. Did you mean 'clusters'\?"),
        ("zzz = 1\n", r"no setting 'zzz' in .*r\.toml\. Known are encoder, pooling, vectors"),
        ("width = 9\n", r"There is no setting 'width' in .*r\.toml\. It belongs under \[convolution\]"),
        ("[convolution]\nwidht = 9\n", r"There is no setting 'widht' in .* Did you mean 'width'\?"),
        ("convolution = 9\n", r"The setting convolution in .*r\.toml is not a table"),
        ("clusters: 5\n", r"r\.toml is not TOML: .* Write one setting a line, as in: clusters = 5"),
        ("clusters = " + "[" * 100_000 + "]" * 100_000, r"r\.toml is not TOML"),
        (b'vectors = "caf\xe9"\n', r"Cannot read the recipe .*r\.toml"),
        (None, r"Cannot read the recipe .*r\.toml.*Give the path of a TOML file\."),
        ('vectors = "random"\n', r'does not use vectors = "random"\.'),
    ],
)
def test_a_file_that_is_missing_or_not_a_recipe_is_refused(content, message, tmp_path):
    if content is not None:
        (tmp_path / "r.toml").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecipeError, match=message):
        Recipe.load(tmp_path / "r.toml")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"width": 0}, r"The setting width is 0\. Set it to an integer from 1 to 10,000\."),
        ({"learning_rate": 11.0}, r"The setting learning_rate is 11\.0\. Set it to a number from 1e-09 to 10\."),
        ({"task_steps": True}, "The setting task_steps is True"),
        ({"width": "wide"}, "The setting width is 'wide'"),
        ({"metric_steps": None}, "The setting metric_steps is None"),
        ({"p1": float("nan")}, "The setting p1 is nan"),
        ({"width": 10.0}, r"The setting width is 10\.0\. Set it to an integer from"),
        ({"window": 4}, r"The setting window is 4\. Set it to an odd number"),
        ({"objective": "f1"}, r"The setting objective is 'f1'\. Set it to one of auto, matching, prototypical"),
        ({"vectors": 5}, r"The setting vectors is 5\. Set it to a name or a path, in quotes\."),
        ({"pooling": "max"}, r"The setting pooling is 'max'\. Set it to one of auto, cls, mean\."),
        ({"representation": "convolution"}, "trained over word vectors: set encoder to 'words'"),
    ],
)
def test_a_setting_out_of_range_says_its_range(settings, text):
    of_networks = settings.keys() <= {setting.name for setting in fields(ConvolutionSettings)}
    with pytest.raises(RecipeError, match=text):
        (Recipe.paper if of_networks else Recipe)(**settings)


def test_each_stage_gets_the_settings_it_needs():
    recipe = Recipe.paper(width=9, window=3, task_steps=7, metric_steps=8, shots=4)
    single, shared, cluster = handed_out(recipe)
    assert shared is None
    assert single["convolution"] == {"window": 3, "width": 9, "dropout": 0.5}
    assert single["training"]["steps"] == 7
    assert cluster["convolution"]["dropout"] == 0.2
    assert (cluster["training"]["steps"], cluster["training"]["shots"]) == (8, 4)
    recipe = Recipe.fast(projection_steps=1000, projection_rate=0.01, own_steps=7, own_rate=0.02)
    single, shared, cluster = (spec["training"] for spec in handed_out(recipe))
    assert [training["steps"] for training in (single, shared, cluster)] == [7, 1000, 250]
    assert [training["learning_rate"] for training in (single, shared, cluster)] == [0.02, 0.01, 0.01]
    assert {training["dropout"] for training in (single, shared, cluster)} == {0.1}
    assert all(0 < training["check_every"] <= training["steps"] for training in (single, shared, cluster))
    assert handed_out(Recipe.fast(projection_steps=1))[2]["training"]["steps"] == 1


def test_recipes_have_names():
    assert Recipe.named("default") == Recipe() == Recipe(vectors=Recipe.vectors)
    assert Recipe.named("fast") == Recipe.fast()
    assert (Recipe.fast().encoder, Recipe.fast().representation) == ("words", "projection")
    paper = Recipe.named("paper")
    assert paper == Recipe.paper()
    assert (paper.encoder, paper.vectors, paper.representation) == ("words", "glove-100d", "convolution")
    assert Recipe.fast(own_steps=9) == replace(Recipe.fast(), own_steps=9)
    with pytest.raises(TypeError, match="own_stpes"):
        Recipe.fast(own_stpes=9)


def test_settings_of_networks_have_a_table_of_their_own(tmp_path):
    (tmp_path / "r.toml").write_text('encoder = "words"\nrepresentation = "convolution"\n[convolution]\nwidth = 9\n')
    assert Recipe.load(tmp_path / "r.toml").convolution == ConvolutionSettings(width=9)
    assert "convolution" not in tomllib.loads(Recipe().as_toml())
    assert "convolution" not in Recipe().as_dict()


def test_settings_that_have_no_effect_with_the_encoder_are_refused():
    with pytest.raises(RecipeError, match=r"'bge-small' and projections does not use convolution = .*width=9"):
        Recipe(convolution=ConvolutionSettings(width=9))
    with pytest.raises(RecipeError, match=r"word vectors and convolutions does not use own_steps = 7\."):
        Recipe.paper(own_steps=7)
    with pytest.raises(RecipeError, match=r'word vectors and projections does not use pooling = "mean"\.'):
        Recipe.fast(pooling="mean")
    assert Recipe(encoder="my-encoder", pooling="mean").pooling == "mean"


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_every_setting_that_is_refused_has_no_effect_and_every_other_one_is_accepted(name):
    """Where a setting counts is written once, beside it; what the stages get says whether that is so."""
    others = {int: 9, float: 0.25}
    usual = Recipe.named(name)
    for setting in fields(Recipe):
        value = others.get(setting.type)
        if value is None or value == getattr(usual, setting.name):
            continue
        changed = Recipe.named(name)
        object.__setattr__(changed, setting.name, value)
        try:
            replace(usual, **{setting.name: value})
        except RecipeError:
            assert handed_out(changed) == handed_out(usual), setting.name
        else:
            used = handed_out(changed) != handed_out(usual)
            assert used or setting.name in ("p2", "most_clusters", "held_out", "seed", "shots"), setting.name


def test_a_representation_that_is_not_defined_is_refused_when_learning_begins():
    with pytest.raises(RecipeError, match=r"no representation 'graph' here\. Choose one of projection, low-rank, conv"):
        learn_metrics(BANK, Recipe.fast(representation="graph"), vectors=WORDS)
