"""The paper's experiments again: every row of its main table and today's, the figure over K, and ablations.

The protocol. The targets are shown to methods without their test labels (`bench`), and to training and selection not
at all: these see a `Learning`, which holds the past tasks' train and valid texts. Whatever is chosen by trial (the
settings of the mix, the threshold of the fallback, all knobs of the paper's method and of baselines) is tried on past
tasks, held out from training; what `tuning` and `published` choose with the first seed, for all. Our number of
clusters follows from the spectrum of X, as it does for whoever uses the package, unless the recipe sets it.

The main rows are run for every seed; the figure over K and the ablations for the first (`parts`). Every row answers
from the shots, none from the names of labels.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from experiments import plan, published, tuning
from experiments.asap import binary_and_shared
from experiments.baselines.multi_task import fine_tuned, pooled_tfidf, single_task_metrics, train_together
from experiments.baselines.peers import HOW_TO_INSTALL, sentence_regression, setfit
from experiments.baselines.single_task import (
    LETTERS,
    WORDS,
    single_task_fasttext,
    tfidf_regression,
)
from experiments.bench import Answers, Bench
from experiments.convex import UNTUNED, Convex, choose_convex
from experiments.networks import Network, choose_network
from experiments.parts import ADAPTIVE, MAIN, OWN, WAYS, Parts, answer_by_clusters, asap_metrics
from experiments.problems import DRAWS
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.errors import MissingExtra
from manymetrics.evaluation.baselines import (
    by_metric,
    frozen_prototypes,
    frozen_regression,
    single_task_network,
    train_one_metric,
)
from manymetrics.evaluation.targets import Method
from manymetrics.learn import find_clusters, specialize_and_weigh
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.weigh.published import Descent, choose_descent

SHAPE = ("words", "window", "width")  # of a network
MIXING = ("clusters", *SHAPE, "rate", "steps")  # what the method as published chooses
NEEDS_SHARED = "does not apply: the tasks do not share their labels"
NEEDS_BINARY = "does not apply: the tasks do not all choose between the same two labels"


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that was answered, by the row's name and then by seed, and what did not apply."""

    answers: dict[str, dict[int, Answers]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # row -> why
    figure: dict[tuple[str, int], Answers] = field(default_factory=dict)  # (method, K), of the first seed
    ablations: dict[str, Answers] = field(default_factory=dict)  # of the first seed
    random: list[Answers] = field(default_factory=list)  # clusters dealt at random, draw by draw, of the first seed
    chosen: dict[str, tuning.Knobs] = field(default_factory=dict)  # by row: what it chose on past tasks
    fallback: dict[str, Any] = field(default_factory=dict)  # of the method as published: its rule, tried on past tasks

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
        first = replace(self.recipe, seed=size.seeds[0])
        tuned = tuning.Tuning(self.bench, first, plan.QUICK_PROBLEMS if size.quick else DRAWS)
        self.answer_without_seed(size.seeds, tuned)
        parts = Parts(self.bench, first, self._published_network(tuned))
        as_published = self._published_knobs(parts, size.clusters, tuned)
        for seed in size.seeds:
            self.answer_as_published(as_published, seed, tuned)
            self.answer_baselines(replace(self.recipe, seed=seed), tuned)
        learn = {seed: cache(partial(self._learn, replace(self.recipe, seed=seed))) for seed in size.seeds}
        for seed in size.seeds:
            self.answer_by_ours(replace(self.recipe, seed=seed), learn[seed])
        if not size.table_only:
            self.vary(parts, size)
        return learn[size.seeds[0]]()

    def _learn(self, recipe: Recipe) -> MetricModel:
        learning, work = self.bench.learning, self.bench.work
        return specialize_and_weigh(learning, find_clusters(learning, work, recipe), work, recipe)

    def vary(self, parts: Parts, size: plan.Size) -> None:
        """The figure over K, the ablations, and clusters dealt at random."""
        self.outcome.figure.update(parts.vary_clusters(size.clusters))
        self.outcome.ablations.update(parts.ablate(self.recipe.clusters))
        self.outcome.random.extend(parts.deal_at_random(self.recipe.clusters, size.random_draws))
        if not self.labels_shared:
            self.outcome.skipped[plan.DIRECT_ABLATION] = NEEDS_SHARED

    def _published_knobs(self, parts: Parts, counts: tuple[int, ...], tuned: tuning.Tuning) -> tuning.Knobs:
        """K, rate, steps and threshold of the method as published, by its own accuracy on held-out past tasks."""
        recipe, learning, work = self._as_published(tuned.recipe), self.bench.learning, self.bench.work
        network = parts.network

        def find() -> tuning.Knobs:
            clusters = recipe.clusters or published.choose_clusters(parts.published(counts))
            asked = replace(recipe, clusters=clusters)
            metrics, held_out = published.train_cluster_metrics(learning, work, asked, network)
            problems, known = tuned.draw(held_out), {"clusters": clusters, **asdict(network)}
            if not len(problems):
                return {**known, **asdict(UNTUNED), "free": asdict(published.UNTUNED_FREE),
                        "threshold": published.PAPER_THRESHOLD, "problems": 0, "rules": []}  # fmt: skip
            answers = published.said(metrics, problems)
            descent, freely = choose_convex(answers)[0], choose_descent(answers)[0]
            fallback = tuned.single_task_network(recipe.seed)
            rules = published.try_thresholds(metrics, descent.answer, fallback, problems)
            threshold = published.choose_threshold(rules)
            told = {"problems": len(problems), "rules": [asdict(rule) for rule in rules]}
            return {**known, **asdict(descent), "free": asdict(freely), "threshold": threshold, **told}

        asked = {"recipe": recipe.as_dict(), "counts": counts, "network": asdict(network)}
        return self.bench.choose(plan.PUBLISHED, asked, find)

    def _published_network(self, tuned: tuning.Tuning) -> Network:
        """Window, width and word vectors of the method as published, on the clusters that the spectrum of X gives."""
        recipe, learning, work = self._as_published(tuned.recipe), self.bench.learning, self.bench.work

        def find() -> tuning.Knobs:
            clusters = find_clusters(learning, work, recipe).clusters
            return asdict(choose_network(clusters, learning, work, recipe))

        return Network(**self.bench.choose(f"{plan.PUBLISHED}: network", {"recipe": recipe.as_dict()}, find))

    def _as_published(self, recipe: Recipe) -> Recipe:
        return plan.as_published(recipe, len(self.bench.past))

    def answer_without_seed(self, seeds: Iterable[int], tuned: tuning.Tuning) -> None:
        """The rows that chance has no part in; they count for every seed."""
        bench, words = self.bench, self.bench.learning.words
        makers: dict[str, Callable[..., Method]] = {
            "TF-IDF words + LR": partial(tfidf_regression, WORDS),
            "TF-IDF letters + LR": partial(tfidf_regression, LETTERS),
            "TF-IDF + LR over all tasks": partial(pooled_tfidf, bench.past),
            "Frozen vectors + nearest prototype": partial(frozen_prototypes, words),
            "Frozen vectors + LR": partial(frozen_regression, words),
            "Sentence encoder + LR": sentence_regression,
        }
        if not self.labels_shared:
            self.outcome.skipped["TF-IDF + LR over all tasks"] = NEEDS_SHARED
        if plan.SENTENCE not in self.extras:
            self.outcome.skipped["Sentence encoder + LR"] = _not_asked(plan.SENTENCE)
        found = {"Majority class": bench.majority()}
        for row, make in makers.items():
            if row not in self.outcome.skipped and (answers := self._answer_one(row, make, tuned)) is not None:
                found[row] = answers
        for seed in seeds:
            for row, answers in found.items():
                self.outcome.keep(row, seed, answers)

    def answer_by_ours(self, recipe: Recipe, learn: Callable[[], MetricModel]) -> None:
        """Our rows."""
        seed = recipe.seed
        ours = answer_by_clusters(
            self.bench, f"RobustTC-FSL, seed {seed}", recipe, OWN, lambda: learn().serving, ways=WAYS
        )
        self.outcome.keep(plan.REFERENCE, seed, ours[MAIN])
        self.outcome.keep("Adaptive RobustTC-FSL", seed, ours[ADAPTIVE])

    def answer_as_published(self, knobs: tuning.Knobs, seed: int, tuned: tuning.Tuning) -> None:
        """The paper's method, with the knobs that were chosen for it, on its own clusters and on ASAP-style ones."""
        bench, rows = self.bench, (plan.PUBLISHED, plan.PUBLISHED_ADAPTIVE, plan.PUBLISHED_FREE)
        recipe = replace(self._as_published(self.recipe), clusters=knobs["clusters"], seed=seed)
        descent, network = Convex(knobs["rate"], knobs["steps"]), Network(*(knobs[one] for one in SHAPE))

        def make() -> dict[str, Method]:
            metrics, _ = published.train_cluster_metrics(bench.learning, bench.work, recipe, network)
            fallback = tuned.single_task_network(seed)
            mixed = partial(published.mix_as_published, metrics)
            methods = (
                mixed(descent.answer),
                mixed(descent.answer, threshold=knobs["threshold"], fallback=fallback),
                mixed(published.free(Descent(**knobs["free"]))),
            )
            return dict(zip(rows, methods, strict=True))

        asked = {"recipe": recipe.as_dict(), "chosen": knobs}
        found = bench.answer(f"as published, seed {seed}", dict.fromkeys(rows, asked), make)
        for row in rows:
            self.outcome.keep(row, seed, found[row])
            told = (*MIXING, "threshold") if row == plan.PUBLISHED_ADAPTIVE else MIXING
            own = {**knobs, **knobs["free"]} if row == plan.PUBLISHED_FREE else knobs
            self.outcome.chosen[row] = {name: own[name] for name in told}
        self.outcome.fallback.update(threshold=knobs["threshold"], problems=knobs["problems"], rules=knobs["rules"])

        if not binary_and_shared(bench.past):
            self.outcome.skipped[plan.ASAP] = NEEDS_BINARY
            return

        def make_asap() -> dict[str, Method]:
            return {plan.ASAP: published.mix_as_published(asap_metrics(bench, recipe, network), descent.answer)}

        title = f"{plan.ASAP}, seed {seed}"
        self.outcome.keep(plan.ASAP, seed, bench.answer(title, {plan.ASAP: asked}, make_asap)[plan.ASAP])
        self.outcome.chosen[plan.ASAP] = {name: knobs[name] for name in MIXING}

    def answer_baselines(self, recipe: Recipe, tuned: tuning.Tuning) -> None:
        """The paper's baselines, and SetFit."""
        seed, words = recipe.seed, self.bench.learning.words
        one_metric = partial(_one_metric, self.bench, recipe, tuned.held_out)
        makers: dict[str, Callable[..., Method]] = {
            "Single-task CNN": partial(single_task_network, words, seed=seed),
            "Single-task FastText": partial(single_task_fasttext, words, seed=seed),
            "Fine-tuned holistic MTL-CNN": partial(_fine_tuned, self.bench, recipe, tuned.held_out),
            "Matching Network": partial(one_metric, MATCHING),
            "Prototypical Network": partial(one_metric, PROTOTYPICAL),
            "Combination of all single-task models": partial(_combined, self.bench, recipe),
            "SetFit": partial(setfit, seed=seed),
        }
        if plan.SETFIT not in self.extras:
            self.outcome.skipped["SetFit"] = _not_asked(plan.SETFIT)
        for row, make in makers.items():
            if row not in self.outcome.skipped:
                answers = self._answer_one(row, make, tuned, recipe)
                if answers is not None:
                    self.outcome.keep(row, seed, answers)

    def _answer_one(self, row: str, make: Callable[..., Method], tuned: tuning.Tuning,
                    recipe: Recipe | None = None) -> Answers | None:  # fmt: skip
        """One row's answers with what it chose; None where what it needs is not installed, which is written down."""
        title = row if recipe is None else f"{row}, seed {recipe.seed}"
        try:
            chosen = tuned.of(row)
            knobs = {"chosen": chosen} if recipe is None else {"chosen": chosen, "recipe": recipe.as_dict()}
            answers = self.bench.answer(title, {row: knobs}, lambda: {row: make(**chosen)})[row]
        except MissingExtra as missing:
            if row not in ("Sentence encoder + LR", "SetFit"):
                raise
            self.outcome.skipped[row] = f"not run: {missing}"
            return None
        if chosen:
            self.outcome.chosen[row] = chosen
        return answers


def _one_metric(bench: Bench, recipe: Recipe, held_out: tuple[str, ...], objective: str) -> Method:
    return by_metric(train_one_metric(bench.learning, bench.work, recipe, held_out=held_out, objective=objective))


def _fine_tuned(bench: Bench, recipe: Recipe, held_out: tuple[str, ...], *, steps: int) -> Method:
    together = train_together(bench.learning, bench.work, recipe, held_out=held_out)
    return fine_tuned(together, steps=steps, seed=recipe.seed)


def _combined(bench: Bench, recipe: Recipe, *, rate: float, steps: int) -> Method:
    metrics = single_task_metrics(bench.learning, bench.work, recipe)
    return published.mix_as_published(metrics, Convex(rate, steps).answer)


def _not_asked(name: str) -> str:
    return f"not run: ask for it with --with {name} (needs {HOW_TO_INSTALL})"
