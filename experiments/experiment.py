"""The paper's experiments again: every row of its main table and today's, the figure over K, and ablations.

The protocol. The targets are shown to methods without their test labels (`bench`), and to training and selection not at
all: these see a `Learning`, which holds the past tasks' train and valid texts. Whatever is chosen (K, the settings of
the mix, the threshold of the fallback) is chosen on past tasks, held out from the metrics' training; K with the first
seed, for all.

The main rows are run for every seed; the figure over K and the ablations for the first.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from experiments import plan
from experiments.asap import asap_clusters, binary_and_shared
from experiments.baselines.multi_task import by_task_models, fine_tuned, pooled_tfidf, train_together
from experiments.baselines.peers import HOW_TO_INSTALL, sentence_regression, setfit
from experiments.baselines.single_task import (
    LETTERS,
    WORDS,
    single_task_fasttext,
    tfidf_regression,
)
from experiments.bench import Answers, Bench
from experiments.cluster_count import choose_cluster_count
from experiments.clusterings import random_clusters, raw_clusters
from manymetrics.classifier import DEFAULT, PAPER
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.errors import MissingExtra
from manymetrics.evaluation.baselines import (
    by_metric,
    everything_in_one,
    frozen_prototypes,
    frozen_regression,
    single_task_network,
    train_one_metric,
)
from manymetrics.evaluation.targets import Method, adapted
from manymetrics.learn import Found, find_clusters, specialize_and_weigh
from manymetrics.measure import train_task_models
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.specialize.metric import LINEAR, TUNED
from manymetrics.values import Clusters
from manymetrics.weigh import hold_out_tasks

OWN, MAIN = "own", "default"  # the method's own clusters; the way they are used unless a row says otherwise
WAYS: dict[str, tuple[str, dict[str, Any]]] = {  # how a learned model is used -> the row it makes
    MAIN: (plan.REFERENCE, {"mix": DEFAULT, "adaptive": False}),
    "paper": ("RobustTC-FSL, paper mix", {"mix": PAPER, "adaptive": False}),
    "default, adaptive": ("Adaptive RobustTC-FSL", {"mix": DEFAULT, "adaptive": True}),
    "paper, adaptive": ("Adaptive RobustTC-FSL, paper mix", {"mix": PAPER, "adaptive": True}),
}
NEEDS_SHARED = "does not apply: the tasks do not share their labels"
NEEDS_BINARY = "does not apply: the tasks do not all choose between the same two labels"


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that was answered, by the row's name and then by seed, and what did not apply."""

    answers: dict[str, dict[int, Answers]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # row -> why
    figure: dict[tuple[str, int], Answers] = field(default_factory=dict)  # (method, K), of the first seed
    ablations: dict[str, Answers] = field(default_factory=dict)  # of the first seed

    def keep(self, row: str, seed: int, answers: Answers) -> None:
        """Take in the answers of one row and seed."""
        self.answers.setdefault(row, {})[seed] = answers


@dataclass(frozen=True, eq=False)
class Experiment:
    """One data set with its rows; each method below fills a part of the outcome."""

    bench: Bench
    recipe: Recipe
    extras: tuple[str, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)

    @cached_property
    def labels_shared(self) -> bool:
        """Whether all past tasks have the same labels."""
        return self.bench.past.shared_labels is not None

    def run(self, size: plan.Size) -> MetricModel:
        """All of it; gives back the model of the first seed."""
        first = size.seeds[0]
        self.answer_without_seed(size.seeds)
        recipe = self._with_clusters(size.clusters, first)
        models: dict[int, Callable[[], MetricModel]] = {}
        for seed in size.seeds:
            seeded = replace(recipe, seed=seed)
            found = find_clusters(self.bench.learning, self.bench.work, seeded)
            models[seed] = cache(partial(self._learn, found, seeded))
            self.answer_with_seed(seeded, found, models[seed])
        self.vary_clusters(size.clusters, first)
        self.ablate(replace(plan.lighten(recipe), seed=first))
        return models[first]()

    def _with_clusters(self, counts: tuple[int, ...], seed: int) -> Recipe:
        """The recipe with the number of clusters that did best on held-out past tasks, if it leaves that open."""
        if self.recipe.clusters is not None:
            return self.recipe
        light = replace(plan.lighten(self.recipe), seed=seed)
        return replace(self.recipe, clusters=choose_cluster_count(self.bench.learning, self.bench.work, light, counts))

    def answer_without_seed(self, seeds: Iterable[int]) -> None:
        """The rows that chance has no part in; they count for every seed."""
        bench, words = self.bench, self.bench.learning.words
        makers: dict[str, Callable[[], Method]] = {
            "TF-IDF words + LR": partial(tfidf_regression, WORDS),
            "TF-IDF letters + LR": partial(tfidf_regression, LETTERS),
            "TF-IDF + LR over all tasks": partial(pooled_tfidf, bench.past),
            "Frozen vectors + nearest prototype": partial(frozen_prototypes, words),
            "Frozen vectors + LR": partial(frozen_regression, words, balanced=False),
            "Sentence encoder + LR": sentence_regression,
        }
        if not self.labels_shared:
            self.outcome.skipped["TF-IDF + LR over all tasks"] = NEEDS_SHARED
        if plan.SENTENCE not in self.extras:
            self.outcome.skipped["Sentence encoder + LR"] = _not_asked(plan.SENTENCE)
        found = {"Majority class": bench.majority()}
        for row, make in makers.items():
            if row not in self.outcome.skipped and (answers := self._answer_one(row, {}, make)) is not None:
                found[row] = answers
        for seed in seeds:
            for row, answers in found.items():
                self.outcome.keep(row, seed, answers)

    def answer_with_seed(self, recipe: Recipe, found: Found, learn: Callable[[], MetricModel]) -> None:
        """The rows that are learned: ours and the paper's baselines."""
        seed, bench = recipe.seed, self.bench
        bank, words = bench.learning.material.bank, bench.learning.words
        ours = self.answer_by_clusters(f"RobustTC-FSL, seed {seed}", recipe, OWN, learn, ways=WAYS)
        for way, (row, _) in WAYS.items():
            self.outcome.keep(row, seed, ours[way])
        sources = {task.name: task.source for task in bank}
        held_out = hold_out_tasks(everything_in_one(bank.names), sources, recipe.held_out, seed=seed)
        one_metric = partial(_one_metric, bench, recipe, held_out)
        makers: dict[str, Callable[[], Method]] = {
            "Single-task CNN": partial(single_task_network, words, seed=seed),
            "Single-task FastText": partial(single_task_fasttext, words, seed=seed),
            "Fine-tuned holistic MTL-CNN": partial(_fine_tuned, bench, recipe),
            "Matching Network": partial(one_metric, MATCHING),
            "Prototypical Network": partial(one_metric, PROTOTYPICAL),
            "Combination of all single-task models": partial(_combined, bench, recipe),
            "SetFit": partial(setfit, seed=seed),
        }
        if plan.SETFIT not in self.extras:
            self.outcome.skipped["SetFit"] = _not_asked(plan.SETFIT)
        for row, make in makers.items():
            if row not in self.outcome.skipped:
                answers = self._answer_one(row, {"recipe": recipe.as_dict()}, make, seed=seed)
                if answers is not None:
                    self.outcome.keep(row, seed, answers)
        if not binary_and_shared(bank):
            self.outcome.skipped[plan.ASAP] = NEEDS_BINARY
        else:
            self.outcome.keep(plan.ASAP, seed, self.answer_by_asap(recipe, found, len(found.clusters)))

    def vary_clusters(self, numbers: Iterable[int], seed: int) -> None:
        """Accuracy against the number of clusters, for clusters of both kinds."""
        first = replace(plan.lighten(self.recipe), seed=seed)
        for number in numbers:
            recipe = replace(first, clusters=number)
            found = find_clusters(self.bench.learning, self.bench.work, recipe)
            learn = partial(self._learn, found, recipe)
            answers = self.answer_by_clusters(f"{number} clusters", recipe, OWN, learn)
            self.outcome.figure[plan.REFERENCE, number] = answers[MAIN]
            if binary_and_shared(self.bench.past):
                self.outcome.figure[plan.ASAP, number] = self.answer_by_asap(first, found, number)

    def ablate(self, recipe: Recipe) -> None:
        """The method with one part taken out or put otherwise, beside itself with the same lighter training."""
        seed, kept = recipe.seed, self.outcome.ablations
        found = find_clusters(self.bench.learning, self.bench.work, recipe)
        learn = cache(partial(self._learn, found, recipe))
        kept[plan.WHOLE] = self.answer_by_clusters(plan.WHOLE, recipe, OWN, learn)[MAIN]
        kept |= self._ablate_kinds(learn, recipe)
        others: dict[str, Callable[[], Clusters]] = {
            plan.RAW_ABLATION: partial(raw_clusters, found.transfer, len(found.clusters)),
            plan.RANDOM_ABLATION: partial(random_clusters, found.clusters, seed=seed),
        }
        for row, cluster in others.items():
            kept[row] = self.answer_by_clusters(row, recipe, row, partial(self._learn, found, recipe, cluster))[MAIN]
        for row, knobs in plan.score_ablations(len(self.bench.past), shared_labels=self.labels_shared).items():
            kept[row] = self._ablate_recipe(row, replace(recipe, **knobs))
        if not self.labels_shared:
            self.outcome.skipped[plan.DIRECT_ABLATION] = NEEDS_SHARED

    def answer_by_clusters(self, title: str, recipe: Recipe, clusters: str, learn: Callable[[], MetricModel],
                           ways: Iterable[str] = (MAIN,)) -> dict[str, Answers]:  # fmt: skip
        """A metric for each of some clusters, mixed in one or more ways; `clusters` names where they come from."""

        def make() -> dict[str, Method]:
            model = learn()
            return {way: adapted(model, **WAYS[way][1]) for way in ways}

        knobs = {"recipe": recipe.as_dict(), "clusters": clusters}
        return self.bench.answer(title, dict.fromkeys(ways, knobs), make)

    def answer_by_asap(self, recipe: Recipe, found: Found, number: int) -> Answers:
        """The same with ASAP-style clusters."""
        learning = self.bench.learning
        cluster = partial(asap_clusters, learning.material.bank, learning.words, number, seed=recipe.seed)
        title = f"{number} ASAP-style clusters, seed {recipe.seed}"
        learn = partial(self._learn, found, recipe, cluster)
        return self.answer_by_clusters(title, recipe, f"asap {number}", learn)[MAIN]

    def _learn(self, found: Found, recipe: Recipe, cluster: Callable[[], Clusters] | None = None) -> MetricModel:
        found = found if cluster is None else replace(found, clusters=cluster())
        return specialize_and_weigh(self.bench.learning, found, self.bench.work, recipe)

    def _ablate_recipe(self, row: str, recipe: Recipe) -> Answers:
        def learn() -> MetricModel:
            return self._learn(find_clusters(self.bench.learning, self.bench.work, recipe), recipe)

        return self.answer_by_clusters(row, recipe, OWN, learn)[MAIN]

    def _ablate_kinds(self, learn: Callable[[], MetricModel], recipe: Recipe) -> dict[str, Answers]:
        """The default mix without the metrics of one kind."""
        without = TUNED if self.labels_shared else LINEAR  # these tasks have none
        rows = {row: kind for row, kind in plan.TAKEN_OUT.items() if kind != without}

        def make() -> dict[str, Method]:
            return {row: adapted(_without(learn(), kind), **WAYS[MAIN][1]) for row, kind in rows.items()}

        knobs = {"recipe": recipe.as_dict(), "clusters": OWN}
        return self.bench.answer("without a kind of metric", dict.fromkeys(rows, knobs), make)

    def _answer_one(self, row: str, knobs: Mapping[str, Any], make: Callable[[], Method],
                    seed: int | None = None) -> Answers | None:  # fmt: skip
        """One row's answers; None where what it needs is not installed, which is written down."""
        title = row if seed is None else f"{row}, seed {seed}"
        try:
            return self.bench.answer(title, {row: knobs}, lambda: {row: make()})[row]
        except MissingExtra as missing:
            if row not in ("Sentence encoder + LR", "SetFit"):
                raise
            self.outcome.skipped[row] = f"not run: {missing}"
            return None


def _one_metric(bench: Bench, recipe: Recipe, held_out: tuple[str, ...], objective: str) -> Method:
    return by_metric(train_one_metric(bench.learning, bench.work, recipe, held_out=held_out, objective=objective))


def _fine_tuned(bench: Bench, recipe: Recipe) -> Method:
    return fine_tuned(train_together(bench.learning, bench.work, recipe), seed=recipe.seed)


def _combined(bench: Bench, recipe: Recipe) -> Method:
    material, words = bench.learning.material, bench.learning.words
    models = train_task_models(material, bench.work, words=words, **recipe.task_training(), seed=recipe.seed)
    return by_task_models(models, bench.learning)


def _without(model: MetricModel, kind: str) -> MetricModel:
    """The model without the metrics of a kind, and with no share for them."""
    metrics = tuple(metric for metric in model.metrics if metric.kind != kind)
    settings = replace(model.settings, shares={**model.settings.shares, kind: 0.0})
    return MetricModel(replace(model.serving, metrics=metrics, settings=settings), model.origin)


def _not_asked(name: str) -> str:
    return f"not run: ask for it with --with {name} (needs {HOW_TO_INSTALL})"
