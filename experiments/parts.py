"""The figure over K and the ablations: what the clusters, their number and each other part of the method are worth.

Dozens of trainings with one seed. Ours differ from one another in the clusters and in nothing else: the projection that
all tasks share and the held-out tasks are the same. The method as published and ASAP-style clusters have the number of
clusters that is asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from experiments import plan, published
from experiments.asap import asap_clusters, binary_and_shared
from experiments.bench import Answers, Bench
from experiments.clusterings import random_clusters, raw_clusters
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


def asap_metrics(bench: Bench, recipe: Recipe, network: published.Network) -> list[Metric]:
    """The metrics of so many ASAP-style clusters as the recipe asks for; where it leaves that open, of one."""
    clusters = asap_clusters(bench.shared_data.bank, bench.shared_data.base, recipe.clusters or 1, seed=recipe.seed)
    return published.train_on(clusters, bench, recipe, network)[0]


@dataclass(frozen=True, eq=False)
class Parts:
    """The method with a number of clusters, or a part, otherwise."""

    bench: Bench
    recipe: Recipe  # of networks
    network: published.Network  # of the method as published
    _published: dict[int, published.Tried] = field(default_factory=dict)

    def published(self, counts: Sequence[int]) -> dict[int, published.Tried]:
        """The method as published, by the number of its clusters; tried once."""
        if not self._published:
            self._published.update(published.try_clusters(self.bench, self._as_published, counts, self.network))
        return self._published

    def vary_clusters(self, counts: Sequence[int]) -> dict[tuple[str, int], Answers]:
        """Accuracy against the number of clusters: ours, mixed as published, and clusters of another kind."""
        figure: dict[tuple[str, int], Answers] = {}
        for count in counts:
            figure[plan.REFERENCE, count] = self._answer(f"{count} clusters", OWN, self._ours(count))
            figure[plan.PUBLISHED, count] = self._answer_as_published(plan.PUBLISHED, counts, count)
        if binary_and_shared(self.bench.past):
            figure |= {(plan.ASAP, count): self._answer_as_published(plan.ASAP, counts, count) for count in counts}
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

        def answer(draw: int) -> Answers:
            name = f"random clusters {draw}"
            return self._answer(name, name, self._ours(count), lambda found: random_clusters(found.clusters, seed=draw))

        return [answer(draw) for draw in range(draws)]

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

    def _answer_as_published(self, row: str, counts: Sequence[int], count: int) -> Answers:
        """The clusters found or ASAP-style ones, both mixed by the descent chosen for as many clusters found."""

        def make() -> dict[str, Method]:
            tried = self.published(counts)
            gradient = tried[count].gradient if count in tried else published.UNTUNED
            if row == plan.ASAP:
                metrics: Sequence[Metric] = asap_metrics(self.bench, recipe, self.network)
            elif count in tried:
                metrics = tried[count].metrics
            else:
                metrics, _ = published.train_cluster_metrics(self.bench, recipe, self.network)
            return {row: published.mix_as_published(metrics, gradient.answer)}

        recipe = replace(self._as_published, clusters=count)
        asked = {"recipe": recipe.as_dict(), "counts": list(counts), "network": self.network}
        return self.bench.answer(f"{count} clusters, {row}", {row: asked}, make)[row]

    @property
    def _as_published(self) -> Recipe:
        return plan.as_published(self.recipe, len(self.bench.past))

    def _ablate_kinds(self, recipe: Recipe) -> dict[str, Answers]:
        """The whole, and a task's own metric without those of some kinds."""
        shared = self.bench.past.shared_labels is not None
        rows: dict[str, tuple[str, ...]] = {plan.WHOLE: ()}
        rows |= {row: kinds for row, kinds in plan.TAKEN_OUT.items() if shared or LINEAR not in kinds}

        def make() -> dict[str, Method]:
            predictor = self._predictor(recipe, lambda found: found.clusters)
            without = {
                row: tuple(metric for metric in predictor.metrics if metric.kind not in kinds)
                for row, kinds in rows.items()
            }
            return {row: serve(replace(predictor, metrics=metrics)) for row, metrics in without.items()}

        settings = {"recipe": recipe.as_dict(), "clusters": OWN}
        return self.bench.answer("without a kind of metric", dict.fromkeys(rows, settings), make)
