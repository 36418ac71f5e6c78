"""What is compared in the paper's experiments, and what the paper says came out.

The figures are those of the paper's table `tab:main_exp` and, for ASAP-style clusters, of its section on clustering
algorithms (five clusters). Its intent data are private: there the figures stand beside ours for orientation only.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from manymetrics.errors import InputError
from manymetrics.measure.scores import ACCURACY
from manymetrics.recipe import PUBLISHED_PARTITION, Recipe
from manymetrics.specialize.metric import LEARNED, LINEAR, TUNED
from manymetrics.weigh import REGRESSION

AMAZON, INTENT = "amazon", "intent"
EXPERIMENTS = (AMAZON, INTENT)
OURS, PAPER, TODAY = "ours", "paper", "today"  # groups of rows
SENTENCE, SETFIT = "sentence", "setfit"
EXTRAS = (SENTENCE, SETFIT)
CLUSTER_COUNTS, QUICK_CLUSTER_COUNTS = (1, 2, 3, 5, 10, 20, 30), (1, 2, 5)
SEEDS, QUICK_SEEDS = 3, 1
RANDOM_DRAWS, QUICK_RANDOM_DRAWS = 20, 2
QUICK_TASKS, QUICK_TRAIN, QUICK_VALID = 12, 150, 50  # past tasks, and texts of each
QUICK_TEST = 100  # texts of a target
QUICK_PROBLEMS = 1  # of each task that knobs are tuned on
QUICK_TASK_STEPS, QUICK_METRIC_STEPS = 60, 100
LIGHT_STEPS = 1500  # of a cluster's classifier, in the figure over K and the ablations
LARGE_BANK = 100  # tasks; above, other scores of S are compared on a sample of the pairs
TAKEN_OUT = {  # kinds of metrics that a mix can do without; the others judge the scope, too
    "Without learned metrics": LEARNED,
    "Without linear metrics": LINEAR,
    "Without tuned word vectors": TUNED,
    "Without the regression over all metrics": REGRESSION,
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
    Row(REFERENCE, OURS, 0.8312, 0.3759, "several kinds of metrics, weights on the simplex"),
    Row(PUBLISHED, OURS, 0.8312, 0.3759, "the clusters' metrics alone, a convex mix"),
    Row("Adaptive RobustTC-FSL", OURS, None, 0.4297, "falls back to a model of the shots when no cluster fits"),
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
    Row("Sentence encoder + LR", TODAY, note="MiniLM, frozen"),
    Row("SetFit", TODAY, note="MiniLM, fine-tuned on the shots, labels weighing alike in the last step"),
)


@dataclass(frozen=True)
class Size:
    """How much of an experiment to do."""

    seeds: tuple[int, ...]
    clusters: tuple[int, ...]  # of the figure
    random_draws: int  # of clusters dealt at random
    quick: bool
    table_only: bool = False  # neither the figure nor the ablations


def choose_size(*, seeds: int | None, quick: bool, tasks: int, random_draws: int | None = None) -> Size:
    """So many seeds and random draws, and the numbers of clusters that leave two tasks to a cluster."""
    count = seeds if seeds is not None else (QUICK_SEEDS if quick else SEEDS)
    if count < 1:
        raise InputError(f"Found seeds={count}. Ask for one seed or more.")
    numbers = QUICK_CLUSTER_COUNTS if quick else CLUSTER_COUNTS
    counts = tuple(number for number in numbers if number <= max(1, tasks // 2))
    draws = random_draws if random_draws is not None else (QUICK_RANDOM_DRAWS if quick else RANDOM_DRAWS)
    return Size(tuple(range(count)), counts, draws, quick)


def quicken(recipe: Recipe, *, tasks: int) -> Recipe:
    """The recipe with shorter training, and as many pairs measured as the paper's theorem asks for: n log^2 n."""
    return replace(
        recipe,
        pairs=recipe.pairs or n_log2_n(tasks),
        task_steps=min(recipe.task_steps, QUICK_TASK_STEPS),
        metric_steps=min(recipe.metric_steps, QUICK_METRIC_STEPS),
        classifier_steps=min(recipe.classifier_steps, QUICK_METRIC_STEPS),
    )


def check_request(experiment: str, extras: tuple[str, ...]) -> None:
    """Refuse what there is not."""
    if experiment not in EXPERIMENTS:
        raise InputError(f"There is no experiment {experiment!r}. Choose one of {', '.join(EXPERIMENTS)}.")
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f"There is no extra method {name!r}. Choose among {', '.join(EXTRAS)}.")


def lighten(recipe: Recipe) -> Recipe:
    """The recipe of the figure over K and of the ablations: dozens of trainings, each a short one."""
    return replace(recipe, classifier_steps=min(recipe.classifier_steps, LIGHT_STEPS), learn_words=False)


def as_published(recipe: Recipe, tasks: int) -> Recipe:
    """The recipe with S and its filter as the paper has them."""
    return replace(recipe, score=ACCURACY, **PUBLISHED_PARTITION, **_sample(recipe, tasks))


def _sample(recipe: Recipe, tasks: int) -> dict[str, Any]:
    """In a large bank the pairs are a sample, as training tens of thousands of heads would take hours."""
    return {"pairs": n_log2_n(tasks)} if tasks > LARGE_BANK and recipe.pairs is None else {}


def n_log2_n(tasks: int) -> int:
    """As many pairs as the paper's theorem asks for."""
    return max(1, int(tasks * math.log(tasks) ** 2 / 2))


def score_ablations(recipe: Recipe, tasks: int, *, shared_labels: bool) -> dict[str, dict[str, Any]]:
    """Other ways to measure S, by the name of the row: the knobs of the recipe they change."""
    sample = _sample(recipe, tasks)
    rows: dict[str, dict[str, Any]] = {
        "No score filtering (p1 = p2 = 0)": {"p1": 0.0, "p2": 0.0},
        "S from accuracy, heads": {"score": ACCURACY, **sample},
        "S from LogME": {"score": "logme", **sample},
    }
    return rows | ({DIRECT_ABLATION: {"score": "log-loss"}} if shared_labels else {})


WHOLE = "Nothing taken out"
DIRECT_ABLATION = "S from log-loss, direct"
RAW_ABLATION = "No completion (spectral clustering of S)"
RANDOM_ABLATION = "Random clusters of the same sizes"
