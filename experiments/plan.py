"""What is compared in the paper's experiments, and what the paper says came out.

The figures are those of the paper's table `tab:main_exp` and, for ASAP-style clusters, of its section on clustering
algorithms (five clusters). Its intent data are private: there the figures stand beside ours for orientation only.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from manymetrics.errors import InputError
from manymetrics.recipe import CONVOLUTION, PUBLISHED_PARTITION, WORDS, ConvolutionSettings, Recipe
from manymetrics.specialize.metric import LEARNED, LINEAR, TUNED

AMAZON, INTENT = "amazon", "intent"
EXPERIMENTS = (AMAZON, INTENT)
OURS, PAPER, TODAY = "ours", "paper", "today"  # groups of rows
CLUSTER_COUNTS, QUICK_CLUSTER_COUNTS = (1, 2, 3, 5, 10, 20, 30), (1, 2, 5)
SEEDS, QUICK_SEEDS = 3, 1
RANDOM_DRAWS, QUICK_RANDOM_DRAWS = 20, 2
QUICK_TASKS, QUICK_TRAIN, QUICK_VALID = 12, 150, 50  # past tasks, and texts of each
QUICK_TEST = 100  # texts of a target
QUICK_PROBLEMS = 1  # of each task that settings are tuned on
QUICK_TASK_STEPS, QUICK_METRIC_STEPS = 60, 100
LARGE_BANK = 100  # tasks; above, the scores of S in the paper's rows are of a sample of the pairs
TAKEN_OUT = {  # kinds of metrics that a task's own metric can do without
    "Without learned metrics": (LEARNED, TUNED),
    "Without the clusters' metrics": (LEARNED,),
    "Without the classifier over shared labels": (LINEAR,),
}
REFERENCE = "RobustTC-FSL"  # what every other row is compared with
PUBLISHED, PUBLISHED_ADAPTIVE = "RobustTC-FSL, paper mix", "Adaptive RobustTC-FSL, paper mix"
PUBLISHED_FREE = "RobustTC-FSL, paper mix, free weights"
ASAP = "ASAP-style clusters"


@dataclass(frozen=True)
class Row:
    """A method to be tried: its name in the table, its group, and the paper's accuracy on either data."""

    method: str
    group: str
    amazon: float | None = None
    intent: float | None = None
    note: str = ""

    def paper(self, experiment: str) -> float | None:
        """The published accuracy."""
        return self.amazon if experiment == AMAZON else self.intent


ROWS = (
    Row(REFERENCE, OURS, 0.8312, 0.3759, "a regression in the task's own metric over static word vectors"),
    Row(PUBLISHED, OURS, 0.8312, 0.3759, "the clusters' metrics alone, a convex mix"),
    Row("Adaptive RobustTC-FSL", OURS, None, 0.4297, "the frozen vectors answer alone when no cluster fits"),
    Row(PUBLISHED_ADAPTIVE, OURS, None, 0.4297, "falls back to a single-task CNN"),
    Row(PUBLISHED_FREE, OURS, 0.8312, 0.3759, "the same with weights that may be anything"),
    Row("Single-task CNN", PAPER, 0.6592, 0.3446),
    Row("Single-task FastText", PAPER, 0.6305, 0.2387, "fixed vectors"),
    Row("Fine-tuned holistic MTL-CNN", PAPER, 0.7656, 0.3036, "400 filters; the last layer is fine-tuned"),
    Row("Matching Network", PAPER, 0.6573, 0.3042, "400 filters"),
    Row("Prototypical Network", PAPER, 0.6815, 0.3151, "400 filters"),
    Row("Combination of all single-task models", PAPER, 0.7885, 0.3443, "a convex one, as the paper calls it"),
    Row(ASAP, PAPER, 0.8265, None, "another clustering, the mix as published"),
    Row("Majority class", TODAY, note="the commonest label of the test texts, which no method is shown"),
    Row("TF-IDF words + LR", TODAY, note="the shots alone"),
    Row("TF-IDF letters + LR", TODAY, note="the shots alone"),
    Row("TF-IDF + LR over all tasks", TODAY, note="every text of the bank"),
    Row("Frozen vectors + nearest prototype", TODAY, note="the shots alone"),
    Row("Frozen vectors + LR", TODAY, note="the shots alone"),
)


@dataclass(frozen=True)
class Size:
    """How much of an experiment to do."""

    seeds: tuple[int, ...]
    clusters: tuple[int, ...]  # of the figure
    random_draws: int  # of clusters drawn at random
    quick: bool


def choose_size(*, seeds: int | None, quick: bool, tasks: int) -> Size:
    """So many seeds, and the numbers of clusters that leave two tasks to a cluster."""
    count = seeds if seeds is not None else (QUICK_SEEDS if quick else SEEDS)
    if count < 1:
        raise InputError(f"Found seeds={count}. Ask for one seed or more.")
    numbers = QUICK_CLUSTER_COUNTS if quick else CLUSTER_COUNTS
    counts = tuple(number for number in numbers if number <= max(1, tasks // 2))
    return Size(tuple(range(count)), counts, QUICK_RANDOM_DRAWS if quick else RANDOM_DRAWS, quick)


def quicken(recipe: Recipe, *, tasks: int) -> Recipe:
    """The recipe with shorter training, and as many pairs measured as the paper's theorem asks for: n log^2 n."""
    networks = recipe.convolution
    return replace(
        recipe,
        pairs=recipe.pairs or n_log2_n(tasks),
        convolution=replace(
            networks,
            task_steps=min(networks.task_steps, QUICK_TASK_STEPS),
            metric_steps=min(networks.metric_steps, QUICK_METRIC_STEPS),
            classifier_steps=min(networks.classifier_steps, QUICK_METRIC_STEPS),
        ),
    )


def networks(recipe: Recipe | None = None) -> Recipe:
    """The recipe of the paper's networks: the one given or, over the default word vectors, the package's settings."""
    if recipe is None:
        return Recipe(encoder=WORDS, representation=CONVOLUTION)
    if recipe.representation != CONVOLUTION:
        raise InputError("The paper's rows are convolution networks. Take a recipe of such, as the one named paper.")
    return recipe


def ours(recipe: Recipe) -> Recipe:
    """The recipe of our rows beside networks: projections over the same word vectors, trained shorter if these are."""
    steps = Recipe.projection_steps * recipe.convolution.metric_steps // ConvolutionSettings.metric_steps
    return Recipe.fast(vectors=recipe.vectors, clusters=recipe.clusters, most_clusters=recipe.most_clusters,
                       shots=recipe.shots, held_out=recipe.held_out, projection_steps=max(1, steps),
                       seed=recipe.seed)  # fmt: skip


def as_published(recipe: Recipe, tasks: int) -> Recipe:
    """The recipe with S and its filter as the paper has them."""
    sample = tasks > LARGE_BANK and recipe.pairs is None  # tens of thousands of heads would take hours
    pairs = n_log2_n(tasks) if sample else recipe.pairs
    return replace(recipe, pairs=pairs, **PUBLISHED_PARTITION)


def n_log2_n(tasks: int) -> int:
    """As many pairs as the paper's theorem asks for."""
    return max(1, int(tasks * math.log(tasks) ** 2 / 2))


# Other ways to cluster the tasks: the settings of the recipe that they change.
PARTITION_ABLATIONS: dict[str, dict[str, Any]] = {
    "No score filtering (p1 = p2 = 0)": {"p1": 0.0, "p2": 0.0},
    "Transfer alone, filtered as published": PUBLISHED_PARTITION,
}
WHOLE = "Nothing taken out"
RAW_ABLATION = "No completion (spectral clustering of S)"
RANDOM_ABLATION = "Random clusters of the same sizes"
