"""What each row of the table may choose on meta-validation problems: tasks of the bank, held out where it learns.

Chosen by accuracy, with the first seed for all; no target is near. Each method gives the settings by name, as the page
shows them.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

from experiments.baselines.multi_task import count_words, fine_tuned, pooled_tfidf, single_task_metrics, train_together
from experiments.baselines.single_task import (
    LETTERS,
    WORDS,
    single_task_fasttext,
    single_task_network,
    tfidf_regression,
)
from experiments.bench import Bench
from experiments.convex import choose_convex
from experiments.problems import DRAWS, choose, draw_problems
from experiments.published import said
from manymetrics.episodes import hold_out
from manymetrics.evaluation.baselines import Method, frozen_regression
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.values import Task, TaskBank

PENALTIES = (0.1, 1.0, 10.0, 100.0)  # scikit-learn's C
NETWORK_STEPS = (20, 50, 150, 400)
FASTTEXT = ((0.1, 10), (0.1, 50), (0.5, 50), (0.5, 200))  # rate, epochs
LAST_LAYER_STEPS = (1, 10, 30, 100, 300)

settings = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Tuning:
    """The meta-validation problems of a bench, and what rows choose on them."""

    bench: Bench
    recipe: Recipe
    draws: int = DRAWS  # problems of each task

    @cached_property
    def held_out(self) -> tuple[str, ...]:
        """The tasks of the bank that nothing learns from while a row is tuned."""
        return hold_out(self.bench.shared_data.bank, self.recipe.held_out, seed=self.recipe.seed)

    @cached_property
    def problems(self) -> TaskBank:
        """Few-shot problems of these tasks."""
        return self.draw(self.held_out)

    def draw(self, names: Iterable[str]) -> TaskBank:
        """Few-shot problems of some tasks of the bank."""
        return draw_problems(self.bench.shared_data.bank, names, seed=self.recipe.seed, draws=self.draws)

    def of(self, row: str) -> settings:
        """What a row chose; nothing where there is nothing to choose."""
        if row not in CHOICES:
            return {}
        settings = {"recipe": self.recipe.as_dict(), "draws": self.draws}
        return self.bench.choose(row, settings, partial(CHOICES[row], self))

    def single_task_network(self, seed: int) -> Method:
        """Baseline (1), as long as it was found best to train it: what the paper's method falls back to."""
        return single_task_network(self.bench.shared_data.base, seed=seed, **self.of("Single-task CNN"))

    def penalty(self, make: Callable[[float], Method]) -> settings:
        """Of a logistic regression."""
        return {"C": choose(PENALTIES, make, self.problems)}

    def pooled_penalty(self) -> settings:
        """Of the regression over all tasks: learned without those that it is tried on."""
        past = self.bench.past
        others = count_words(past.only([name for name in past.names if name not in self.held_out]))
        return self.penalty(lambda C: pooled_tfidf(others, C=C))

    def frozen(self) -> settings:
        """Penalty and balance of a regression on frozen vectors."""
        grid = [(C, balanced) for C in PENALTIES for balanced in (False, True)]
        words = self.bench.shared_data.base
        C, balanced = choose(
            grid, lambda settings: frozen_regression(words, C=settings[0], balanced=settings[1]), self.problems
        )
        return {"C": C, "balanced": balanced}

    def network_steps(self) -> settings:
        """How long a single-task network is trained on the shots."""
        words, seed = self.bench.shared_data.base, self.recipe.seed
        steps = choose(NETWORK_STEPS, lambda one: single_task_network(words, seed=seed, steps=one), self.problems)
        return {"steps": steps}

    def fasttext(self) -> settings:
        """How fast and how long fastText is trained on the shots."""
        words, seed = self.bench.shared_data.base, self.recipe.seed
        rate, epochs = choose(
            FASTTEXT,
            lambda settings: single_task_fasttext(words, seed=seed, rate=settings[0], epochs=settings[1]),
            self.problems,
        )
        return {"rate": rate, "epochs": epochs}

    def last_layer(self) -> settings:
        """How long the last layer of the network of all tasks is fine-tuned on the shots."""
        together = train_together(self.bench.shared_data, self.bench.run_jobs, self.recipe, held_out=self.held_out)
        steps = choose(
            LAST_LAYER_STEPS, lambda one: fine_tuned(together, seed=self.recipe.seed, steps=one), self.problems
        )
        return {"steps": steps}

    def combination(self) -> settings:
        """How the weights of all single-task models are found; a problem is answered by models of other sources."""
        metrics = single_task_metrics(self.bench.shared_data, self.bench.run_jobs, self.recipe)
        sources = {task.name: task.source for task in self.bench.shared_data.bank}

        def others(task: Task) -> list[Metric]:
            return [metric for metric in metrics if sources[metric.name] != task.source]

        return asdict(choose_convex(said(others, self.problems))[0])


CHOICES: dict[str, Callable[[Tuning], settings]] = {
    "TF-IDF words + LR": lambda tuning: tuning.penalty(lambda C: tfidf_regression(WORDS, C=C)),
    "TF-IDF letters + LR": lambda tuning: tuning.penalty(lambda C: tfidf_regression(LETTERS, C=C)),
    "TF-IDF + LR over all tasks": Tuning.pooled_penalty,
    "Frozen vectors + LR": Tuning.frozen,
    "Single-task CNN": Tuning.network_steps,
    "Single-task FastText": Tuning.fasttext,
    "Fine-tuned holistic MTL-CNN": Tuning.last_layer,
    "Combination of all single-task models": Tuning.combination,
}
