"""The baselines: how each is made, and what it chooses on few-shot problems of held-out tasks (meta-validation).

Settings are chosen by accuracy, with the first seed for all; no target is involved. The page shows them by these names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

from experiments.baselines.multi_task import (
    count_words,
    fine_tuned,
    pooled_tfidf,
    single_task_metrics,
    train_one_metric,
    train_together,
)
from experiments.baselines.single_task import (
    LETTERS,
    WORDS,
    single_task_fasttext,
    single_task_network,
    tfidf_regression,
)
from experiments.bench import Bench
from experiments.methods import by_metric, frozen_prototypes
from experiments.problems import DRAWS, choose, draw_problems
from experiments.published import Convex, answers_of, choose_convex, mix_as_published
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.episodes import hold_out
from manymetrics.evaluation.baselines import Method, frozen_regression
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.values import Task, TaskBank

POOLED, COMBINATION, CNN = "TF-IDF + LR over all tasks", "Combination of all single-task models", "Single-task CNN"
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # scikit-learn's C

Settings = dict[str, Any]
Make = Callable[..., Method]  # from the settings that a baseline chooses
HeldOut = tuple[str, ...]  # tasks of the bank


def _one_metric(bench: Bench, recipe: Recipe, held_out: HeldOut, *, objective: str) -> Method:
    metric = train_one_metric(bench.shared_data, bench.run_jobs, recipe, held_out=held_out, objective=objective)
    return by_metric(metric)


def _fine_tuned(bench: Bench, recipe: Recipe, held_out: HeldOut, *, steps: int) -> Method:
    together = train_together(bench.shared_data, bench.run_jobs, recipe, held_out=held_out)
    return fine_tuned(together, steps=steps, seed=recipe.seed)


def _combination(bench: Bench, recipe: Recipe, _: HeldOut, *, rate: float, steps: int) -> Method:
    metrics = single_task_metrics(bench.shared_data, bench.run_jobs, recipe)
    return mix_as_published(metrics, Convex(rate, steps).answer)


WITHOUT_SEED: dict[str, Callable[[Bench], Make]] = {  # chance has no part in these
    "TF-IDF words + LR": lambda bench: partial(tfidf_regression, WORDS),
    "TF-IDF letters + LR": lambda bench: partial(tfidf_regression, LETTERS),
    POOLED: lambda bench: partial(pooled_tfidf, bench.past),
    "Frozen vectors + nearest prototype": lambda bench: partial(frozen_prototypes, bench.shared_data.base),
    "Frozen vectors + LR": lambda bench: partial(frozen_regression, bench.shared_data.base),
}
WITH_SEED: dict[str, Callable[[Bench, Recipe, HeldOut], Make]] = {
    CNN: lambda bench, recipe, _: partial(single_task_network, bench.shared_data.base, seed=recipe.seed),
    "Single-task FastText": lambda bench, recipe, _: partial(
        single_task_fasttext, bench.shared_data.base, seed=recipe.seed
    ),
    "Fine-tuned holistic MTL-CNN": lambda *learned: partial(_fine_tuned, *learned),
    "Matching Network": lambda *learned: partial(_one_metric, *learned, objective=MATCHING),
    "Prototypical Network": lambda *learned: partial(_one_metric, *learned, objective=PROTOTYPICAL),
    COMBINATION: lambda *learned: partial(_combination, *learned),
}
GRIDS: Mapping[str, list[Settings]] = {  # the first of equally good settings is chosen
    "TF-IDF words + LR": [{"C": C} for C in PENALTIES],
    "TF-IDF letters + LR": [{"C": C} for C in PENALTIES],
    POOLED: [{"C": C} for C in PENALTIES],
    "Frozen vectors + LR": [{"C": C, "balanced": balanced} for C in PENALTIES for balanced in (False, True)],
    CNN: [{"steps": steps} for steps in (20, 50, 150, 400)],
    "Single-task FastText": [
        {"rate": rate, "epochs": epochs} for rate, epochs in ((0.1, 10), (0.1, 50), (0.5, 50), (0.5, 200))
    ],
    "Fine-tuned holistic MTL-CNN": [{"steps": steps} for steps in (1, 10, 30, 100, 300)],
    COMBINATION: [],  # by descent
}


@dataclass(frozen=True, eq=False)
class Tuning:
    """The meta-validation problems of a bench, and what baselines choose on them."""

    bench: Bench
    recipe: Recipe
    draws: int = DRAWS  # problems of each task

    @cached_property
    def held_out(self) -> HeldOut:
        """The tasks of the bank that nothing learns from while a baseline is tuned."""
        return hold_out(self.bench.shared_data.bank, self.recipe.held_out, seed=self.recipe.seed)

    @cached_property
    def problems(self) -> TaskBank:
        """Few-shot problems of these tasks."""
        return self.draw(self.held_out)

    def draw(self, names: Iterable[str]) -> TaskBank:
        """Few-shot problems of some tasks of the bank."""
        return draw_problems(self.bench.shared_data.bank, names, seed=self.recipe.seed, draws=self.draws)

    def make(self, row: str, recipe: Recipe | None = None) -> Make:
        """How a baseline is made: without a recipe, by that of the first seed."""
        if row in WITHOUT_SEED:
            return WITHOUT_SEED[row](self.bench)
        return WITH_SEED[row](self.bench, recipe or self.recipe, self.held_out)

    def of(self, row: str) -> Settings:
        """What a baseline chose; nothing where there is nothing to choose."""
        if row not in GRIDS:
            return {}
        settings = {"recipe": self.recipe.as_dict(), "draws": self.draws}
        return self.bench.choose(row, settings, partial(self.choose, row))

    def choose(self, row: str) -> Settings:
        """The settings of a baseline that answer the problems best."""
        if row == COMBINATION:
            return self._choose_combination()
        make = self.make(row)
        if row == POOLED:  # learned without the tasks that it is tried on
            past = self.bench.past
            others = past.only([name for name in past.names if name not in self.held_out])
            make = partial(pooled_tfidf, count_words(others))
        return choose(GRIDS[row], lambda settings: make(**settings), self.problems)

    def _choose_combination(self) -> Settings:
        """How the weights of all single-task models are found; a problem is answered by models of other sources."""
        metrics = single_task_metrics(self.bench.shared_data, self.bench.run_jobs, self.recipe)
        sources = {task.name: task.source for task in self.bench.shared_data.bank}

        def others(task: Task) -> list[Metric]:
            return [metric for metric in metrics if sources[metric.name] != task.source]

        return asdict(choose_convex(answers_of(others, self.problems))[0])

    def single_task_network(self, seed: int) -> Method:
        """Baseline (1), as long as it was found best to train it: what the paper's method falls back to."""
        return single_task_network(self.bench.shared_data.base, seed=seed, **self.of(CNN))
