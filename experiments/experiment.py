"""The paper's experiments again: every row of its main table and today's, the figure over K, and ablations.

The protocol. The targets are shown to methods without their test labels (`bench`), and to training and selection not
at all: these see a `Learning`, which holds the past tasks' train and valid texts. Whatever is chosen by trial (all
settings of the paper's method and of baselines) is tried on past tasks, held out from training; what `tuning` and
`published` choose with the first seed, for all. Our rows are the package over static word vectors: projections, and a
regression in a task's own metric. Our number of clusters follows from the spectrum of X unless the recipe sets it.

The main rows are run for every seed; the figure over K and the ablations for the first (`parts`). Every row answers
from the shots, none from the names of labels.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any

from experiments import plan, published
from experiments.asap import binary_and_shared
from experiments.bench import Answers, Bench
from experiments.parts import ADAPTIVE, MAIN, OWN, WAYS, Parts, answer_by_clusters, asap_metrics
from experiments.problems import DRAWS
from experiments.published import UNTUNED, Convex, choose_convex
from experiments.tuning import POOLED, WITH_SEED, WITHOUT_SEED, Settings, Tuning
from manymetrics.evaluation.baselines import Method
from manymetrics.learn import find_clusters, specialize_and_weigh
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.weigh.published import GradientSettings, choose_gradient

SHAPE = ("window", "width")  # of a network
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
    random: list[Answers] = field(default_factory=list)  # clusters drawn at random, draw by draw, of the first seed
    chosen: dict[str, Settings] = field(default_factory=dict)  # by row: what it chose on past tasks
    fallback: dict[str, Any] = field(default_factory=dict)  # of the method as published: its rule, tried on past tasks

    def keep(self, row: str, seed: int, answers: Answers) -> None:
        """Take in the answers of one row and seed."""
        self.answers.setdefault(row, {})[seed] = answers


@dataclass(frozen=True, eq=False)
class Experiment:
    """One data set with its rows; each method below fills a part of the outcome."""

    bench: Bench
    recipe: Recipe
    outcome: Outcome = field(default_factory=Outcome)

    def run(self, size: plan.Size) -> MetricModel:
        """All of it; gives back the model of the first seed."""
        first = replace(self.recipe, seed=size.seeds[0])
        tuned = Tuning(self.bench, first, plan.QUICK_PROBLEMS if size.quick else DRAWS)
        self.answer_without_seed(size.seeds, tuned)
        parts = Parts(self.bench, first, self._published_network(tuned))
        as_published = self._published_knobs(parts, size.clusters, tuned)
        for seed in size.seeds:
            self.answer_as_published(as_published, seed, tuned)
            for row in WITH_SEED:
                self.outcome.keep(row, seed, self._answer_one(row, tuned, replace(self.recipe, seed=seed)))
        learn = {seed: cache(partial(self._learn, self._ours(seed))) for seed in size.seeds}
        for seed in size.seeds:
            self.answer_by_ours(self._ours(seed), learn[seed])
        self.outcome.figure.update(parts.vary_clusters(size.clusters))
        self.outcome.ablations.update(parts.ablate(self.recipe.clusters))
        self.outcome.random.extend(parts.assign_at_random(self.recipe.clusters, size.random_draws))
        return learn[size.seeds[0]]()

    def _ours(self, seed: int) -> Recipe:
        return plan.ours(replace(self.recipe, seed=seed))

    def _learn(self, recipe: Recipe) -> MetricModel:
        shared_data, run_jobs = self.bench.shared_data, self.bench.run_jobs
        return specialize_and_weigh(shared_data, find_clusters(shared_data, run_jobs, recipe), run_jobs, recipe)

    def _published_knobs(self, parts: Parts, counts: tuple[int, ...], tuned: Tuning) -> Settings:
        """K, rate, steps and threshold of the method as published, by its own accuracy on held-out past tasks."""
        recipe, network = self._as_published(tuned.recipe), parts.network

        def find() -> Settings:
            clusters = recipe.clusters
            if clusters is None:  # of equals the first; none where no task is held out under any number
                tried = parts.published(counts)
                clusters = max(tried, key=lambda count: tried[count].accuracy, default=None)
            asked = replace(recipe, clusters=clusters)
            metrics, held_out = published.train_cluster_metrics(self.bench, asked, network)
            problems, known = tuned.draw(held_out), {"clusters": clusters, **network}
            if not len(problems):
                return {**known, **asdict(UNTUNED), "free": asdict(published.UNTUNED_FREE),
                        "threshold": published.PAPER_THRESHOLD, "problems": 0, "rules": []}  # fmt: skip
            answers = published.answers_of(metrics, problems)
            gradient, freely = choose_convex(answers)[0], choose_gradient(answers)[0]
            fallback = tuned.single_task_network(recipe.seed)
            rules = published.try_thresholds(metrics, gradient.answer, fallback, problems)
            threshold = published.choose_threshold(rules)
            told = {"problems": len(problems), "rules": [asdict(rule) for rule in rules]}
            return {**known, **asdict(gradient), "free": asdict(freely), "threshold": threshold, **told}

        asked = {"recipe": recipe.as_dict(), "counts": counts, "network": network}
        return self.bench.choose(plan.PUBLISHED, asked, find)

    def _published_network(self, tuned: Tuning) -> published.Network:
        """Window and width of the method as published, on the clusters that the spectrum of X gives."""
        recipe, bench = self._as_published(tuned.recipe), self.bench

        def find() -> Settings:
            clusters = find_clusters(bench.shared_data, bench.run_jobs, recipe).clusters
            return published.choose_network(clusters, bench, recipe)

        return bench.choose(f"{plan.PUBLISHED}: network", {"recipe": recipe.as_dict()}, find)

    def _as_published(self, recipe: Recipe) -> Recipe:
        return plan.as_published(recipe, len(self.bench.past))

    def answer_without_seed(self, seeds: Iterable[int], tuned: Tuning) -> None:
        """The rows that chance has no part in; they count for every seed."""
        if self.bench.past.shared_labels is None:
            self.outcome.skipped[POOLED] = NEEDS_SHARED
        found = {"Majority class": self.bench.majority()}
        found |= {row: self._answer_one(row, tuned) for row in WITHOUT_SEED if row not in self.outcome.skipped}
        for seed in seeds:
            for row, answers in found.items():
                self.outcome.keep(row, seed, answers)

    def answer_by_ours(self, recipe: Recipe, learn: Callable[[], MetricModel]) -> None:
        """Our rows."""
        seed = recipe.seed
        ours = answer_by_clusters(
            self.bench, f"RobustTC-FSL, seed {seed}", recipe, OWN, lambda: learn().predictor, ways=WAYS
        )
        self.outcome.keep(plan.REFERENCE, seed, ours[MAIN])
        self.outcome.keep("Adaptive RobustTC-FSL", seed, ours[ADAPTIVE])

    def answer_as_published(self, settings: Settings, seed: int, tuned: Tuning) -> None:
        """The paper's method, with the settings that were chosen for it, on its own clusters and on ASAP-style ones."""
        bench, rows = self.bench, (plan.PUBLISHED, plan.PUBLISHED_ADAPTIVE, plan.PUBLISHED_FREE)
        recipe = replace(self._as_published(self.recipe), clusters=settings["clusters"], seed=seed)
        gradient, network = Convex(settings["rate"], settings["steps"]), {one: settings[one] for one in SHAPE}

        def make() -> dict[str, Method]:
            metrics, _ = published.train_cluster_metrics(bench, recipe, network)
            fallback = tuned.single_task_network(seed)
            mixed = partial(published.mix_as_published, metrics)
            methods = (
                mixed(gradient.answer),
                mixed(gradient.answer, threshold=settings["threshold"], fallback=fallback),
                mixed(published.free(GradientSettings(**settings["free"]))),
            )
            return dict(zip(rows, methods, strict=True))

        asked = {"recipe": recipe.as_dict(), "chosen": settings}
        found = bench.answer(f"as published, seed {seed}", dict.fromkeys(rows, asked), make)
        for row in rows:
            self.outcome.keep(row, seed, found[row])
            told = (*MIXING, "threshold") if row == plan.PUBLISHED_ADAPTIVE else MIXING
            own = {**settings, **settings["free"]} if row == plan.PUBLISHED_FREE else settings
            self.outcome.chosen[row] = {name: own[name] for name in told}
        self.outcome.fallback.update(
            threshold=settings["threshold"], problems=settings["problems"], rules=settings["rules"]
        )

        if not binary_and_shared(bench.past):
            self.outcome.skipped[plan.ASAP] = NEEDS_BINARY
            return

        def make_asap() -> dict[str, Method]:
            return {plan.ASAP: published.mix_as_published(asap_metrics(bench, recipe, network), gradient.answer)}

        title = f"{plan.ASAP}, seed {seed}"
        self.outcome.keep(plan.ASAP, seed, bench.answer(title, {plan.ASAP: asked}, make_asap)[plan.ASAP])
        self.outcome.chosen[plan.ASAP] = {name: settings[name] for name in MIXING}

    def _answer_one(self, row: str, tuned: Tuning, recipe: Recipe | None = None) -> Answers:
        """One row's answers with what it chose."""
        title = row if recipe is None else f"{row}, seed {recipe.seed}"
        chosen = tuned.of(row)
        settings = {"chosen": chosen} if recipe is None else {"chosen": chosen, "recipe": recipe.as_dict()}
        if chosen:
            self.outcome.chosen[row] = chosen
        return self.bench.answer(title, {row: settings}, lambda: {row: tuned.make(row, recipe)(**chosen)})[row]
