"""The figure over K and the ablations: what the clusters, their number and each other part of the method are worth.

Dozens of trainings with one seed. Ours differ from one another in the clusters and in nothing else: the projection that
all tasks share and the held-out tasks are the same. The method as published and ASAP-style clusters have the number of
clusters that is asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from experiments import plan, published
from experiments.asap import asap_clusters, binary_and_shared
from experiments.bench import Answers, Bench
from experiments.clusterings import random_clusters, raw_clusters
from experiments.convex import UNTUNED
from experiments.networks import Network, train_on
from manymetrics.classifier import FewShotClassifier, Predictor
from manymetrics.evaluation.baselines import Method
from manymetrics.learn import find_clusters, specialize_and_weigh
from manymetrics.model import Clustering
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import LINEAR
from manymetrics.values import Clusters, Task

OWN, MAIN, ADAPTIVE = "own", "default", "default, adaptive"  # the method's own clusters; ways to use a model
WAYS = {MAIN: False, ADAPTIVE: True}  # whether it may fall back


def serve(predictor: Predictor, *, adaptive: bool = False) -> Method:
    """The method that adapts metrics to each task's shots, whatever its labels are called."""

    def answer(task: Task) -> list[str]:
        classifier = FewShotClassifier(predictor, adaptive=adaptive, label_names=False)
        return [str(label) for label in classifier.fit(task.train.texts, task.train.labels).predict(task.test.texts)]

    return answer


def answer_by_clusters(bench: Bench, title: str, recipe: Recipe, clusters: str, learn: Callable[[], Predictor],
                       *, ways: Iterable[str] = (MAIN,)) -> dict[str, Answers]:  # fmt: skip
    """A metric for each of some clusters, used in one or more ways; `clusters` names where they come from."""

    def make() -> dict[str, Method]:
        predictor = learn()
        return {way: serve(predictor, adaptive=WAYS[way]) for way in ways}

    settings = {"recipe": recipe.as_dict(), "clusters": clusters}
    return bench.answer(title, dict.fromkeys(ways, settings), make)


def asap_metrics(bench: Bench, recipe: Recipe, network: Network) -> list[Metric]:
    """The metrics of so many ASAP-style clusters as the recipe asks for; where it leaves that open, of one."""
    shared_data = bench.shared_data
    clusters = asap_clusters(shared_data.bank, shared_data.base, recipe.clusters or 1, seed=recipe.seed)
    return train_on(clusters, shared_data, bench.run_jobs, recipe, network)[0]


@dataclass(frozen=True, eq=False)
class Parts:
    """The method with a number of clusters, or a part, otherwise."""

    bench: Bench
    recipe: Recipe  # of networks
    network: Network  # of the method as published
    _published: dict[int, published.Tried] = field(default_factory=dict)

    def published(self, counts: Sequence[int]) -> dict[int, published.Tried]:
        """The method as published, by the number of its clusters; tried once."""
        if not self._published:
            shared_data, run_jobs = self.bench.shared_data, self.bench.run_jobs
            self._published.update(
                published.try_clusters(shared_data, run_jobs, self._as_published, counts, self.network)
            )
        return self._published

    def vary_clusters(self, counts: Sequence[int]) -> dict[tuple[str, int], Answers]:
        """Accuracy against the number of clusters: ours, mixed as published, and clusters of another kind."""
        figure: dict[tuple[str, int], Answers] = {}
        for count in counts:
            figure[plan.REFERENCE, count] = self._answer(f"{count} clusters", OWN, self._ours(count))
            figure[plan.PUBLISHED, count] = self._answer_as_published(counts, count)
        if binary_and_shared(self.bench.past):
            figure |= {(plan.ASAP, count): self._answer_by_asap(counts, count) for count in counts}
        return figure

    def ablate(self, count: int | None) -> dict[str, Answers]:
        """The method with one part taken out or put otherwise, beside itself."""
        recipe = self._ours(count)
        kept = self._ablate_kinds(recipe)
        kept[plan.RAW_ABLATION] = self._answer(
            plan.RAW_ABLATION,
            plan.RAW_ABLATION,
            recipe,
            lambda found: raw_clusters(found.transfer, len(found.clusters)),
        )
        for row, settings in plan.PARTITION_ABLATIONS.items():
            kept[row] = self._answer(row, OWN, replace(recipe, **settings))
        return kept

    def assign_at_random(self, count: int | None, draws: int) -> list[Answers]:
        """The same sizes of clusters, the tasks drawn at random, so many times."""
        return [self._answer_at_random(self._ours(count), draw) for draw in range(draws)]

    def _answer_at_random(self, recipe: Recipe, draw: int) -> Answers:
        name = f"random clusters {draw}"
        return self._answer(name, name, recipe, lambda found: random_clusters(found.clusters, seed=draw))

    def _ours(self, count: int | None) -> Recipe:
        return replace(plan.ours(self.recipe), clusters=count)

    def _answer(self, title: str, clusters: str, recipe: Recipe,
                part: Callable[[Clustering], Clusters] = lambda found: found.clusters) -> Answers:  # fmt: skip
        """Ours on clusters of some kind, by default those found."""
        return answer_by_clusters(self.bench, title, recipe, clusters, partial(self._predictor, recipe, part))[MAIN]

    def _predictor(self, recipe: Recipe, part: Callable[[Clustering], Clusters]) -> Predictor:
        shared_data, run_jobs = self.bench.shared_data, self.bench.run_jobs
        clustering = find_clusters(shared_data, run_jobs, recipe)
        changed = replace(clustering, clusters=part(clustering))
        return specialize_and_weigh(shared_data, changed, run_jobs, recipe).predictor

    def _answer_as_published(self, counts: Sequence[int], count: int) -> Answers:
        def make() -> dict[str, Method]:
            tried = self.published(counts)
            if count in tried:
                return {plan.PUBLISHED: published.mix_as_published(tried[count].metrics, tried[count].gradient.answer)}
            metrics, _ = published.train_cluster_metrics(
                self.bench.shared_data, self.bench.run_jobs, recipe, self.network
            )
            return {plan.PUBLISHED: published.mix_as_published(metrics, UNTUNED.answer)}

        recipe = replace(self._as_published, clusters=count)
        asked = {plan.PUBLISHED: self._asked(recipe, counts)}
        return self.bench.answer(f"{count} clusters, as published", asked, make)[plan.PUBLISHED]

    def _answer_by_asap(self, counts: Sequence[int], count: int) -> Answers:
        """ASAP-style clusters, mixed as the clusters found are: by the descent chosen for as many of them."""

        def make() -> dict[str, Method]:
            tried = self.published(counts)
            gradient = tried[count].gradient if count in tried else UNTUNED
            metrics = asap_metrics(self.bench, recipe, self.network)
            return {plan.ASAP: published.mix_as_published(metrics, gradient.answer)}

        recipe = replace(self._as_published, clusters=count)
        asked = {plan.ASAP: self._asked(recipe, counts)}
        return self.bench.answer(f"{count} ASAP-style clusters", asked, make)[plan.ASAP]

    @property
    def _as_published(self) -> Recipe:
        return plan.as_published(self.recipe, len(self.bench.past))

    def _asked(self, recipe: Recipe, counts: Sequence[int]) -> dict[str, Any]:
        return {"recipe": recipe.as_dict(), "counts": list(counts), "network": asdict(self.network)}

    def _ablate_kinds(self, recipe: Recipe) -> dict[str, Answers]:
        """The whole, and a task's own metric without those of some kinds."""
        shared = self.bench.past.shared_labels is not None
        rows: dict[str, tuple[str, ...]] = {plan.WHOLE: ()}
        rows |= {row: kinds for row, kinds in plan.TAKEN_OUT.items() if shared or LINEAR not in kinds}

        def make() -> dict[str, Method]:
            predictor = self._predictor(recipe, lambda found: found.clusters)
            return {row: serve(_without(predictor, kinds)) for row, kinds in rows.items()}

        settings = {"recipe": recipe.as_dict(), "clusters": OWN}
        return self.bench.answer("without a kind of metric", dict.fromkeys(rows, settings), make)


def _without(predictor: Predictor, kinds: Sequence[str]) -> Predictor:
    """Without the metrics of some kinds."""
    return replace(predictor, metrics=tuple(metric for metric in predictor.metrics if metric.kind not in kinds))
