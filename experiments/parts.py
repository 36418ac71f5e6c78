"""The figure over K and the ablations: what the clusters, their number and each other part of the method are worth.

Dozens of trainings with one seed. Ours are short ones, and all alike: no metric learns from the held-out tasks, on
which the settings of the mix are chosen; clusters dealt at random are mixed by the settings of the clusters found. The
method as published and ASAP-style clusters are trained in full, as the number of their clusters is chosen by it.
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
from manymetrics.classifier import FewShotClassifier, Serving
from manymetrics.evaluation.targets import Method
from manymetrics.learn import Candidates, Found, find_clusters, train_candidates
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_linear_metrics
from manymetrics.specialize.metric import LINEAR, TUNED
from manymetrics.values import Clusters, Task
from manymetrics.weigh import REGRESSION

OWN, MAIN, ADAPTIVE = "own", "default", "default, adaptive"  # the method's own clusters; ways to use a model
WAYS = {MAIN: False, ADAPTIVE: True}  # whether it may fall back


def serve(serving: Serving, *, adaptive: bool = False) -> Method:
    """The method that adapts metrics to each task's shots, whatever its labels are called."""

    def answer(task: Task) -> list[str]:
        classifier = FewShotClassifier(serving, adaptive=adaptive, label_names=False)
        return [str(label) for label in classifier.fit(task.train.texts, task.train.labels).predict(task.test.texts)]

    return answer


def answer_by_clusters(bench: Bench, title: str, recipe: Recipe, clusters: str, learn: Callable[[], Serving],
                       *, ways: Iterable[str] = (MAIN,)) -> dict[str, Answers]:  # fmt: skip
    """A metric for each of some clusters, used in one or more ways; `clusters` names where they come from."""

    def make() -> dict[str, Method]:
        serving = learn()
        return {way: serve(serving, adaptive=WAYS[way]) for way in ways}

    knobs = {"recipe": recipe.as_dict(), "clusters": clusters}
    return bench.answer(title, dict.fromkeys(ways, knobs), make)


def asap_metrics(bench: Bench, recipe: Recipe, network: Network) -> list[Metric]:
    """The metrics of so many ASAP-style clusters as the recipe asks for; where it leaves that open, of one."""
    learning = bench.learning
    clusters = asap_clusters(learning.material.bank, learning.words, recipe.clusters or 1, seed=recipe.seed)
    return train_on(clusters, learning, bench.work, recipe, network)[0]


@dataclass(frozen=True, eq=False)
class Parts:
    """The method with a number of clusters, or a part, otherwise."""

    bench: Bench
    recipe: Recipe
    network: Network  # of the method as published
    _tried: dict[int | None, Candidates] = field(default_factory=dict)
    _published: dict[int, published.Tried] = field(default_factory=dict)

    @property
    def light(self) -> Recipe:
        """With shorter training, for what is ours: dozens of trainings."""
        return plan.lighten(self.recipe)

    def candidates(self, count: int | None) -> Candidates:
        """The metrics of so many clusters, and the settings chosen for them; trained once."""
        if count not in self._tried:
            self._tried[count] = self._train(self._find(count).clusters, replace(self.light, clusters=count))
        return self._tried[count]

    def published(self, counts: Sequence[int]) -> dict[int, published.Tried]:
        """The method as published, by the number of its clusters; tried once."""
        if not self._published:
            learning, work = self.bench.learning, self.bench.work
            self._published.update(published.try_clusters(learning, work, self._as_published, counts, self.network))
        return self._published

    def vary_clusters(self, counts: Sequence[int]) -> dict[tuple[str, int], Answers]:
        """Accuracy against the number of clusters: ours, mixed as published, and clusters of another kind."""
        figure: dict[tuple[str, int], Answers] = {}
        for count in counts:
            figure[plan.REFERENCE, count] = self._answer_own(count)
            figure[plan.PUBLISHED, count] = self._answer_as_published(counts, count)
        if binary_and_shared(self.bench.past):
            figure |= {(plan.ASAP, count): self._answer_by_asap(counts, count) for count in counts}
        return figure

    def ablate(self, count: int | None) -> dict[str, Answers]:
        """The method with one part taken out or put otherwise, beside itself."""
        kept = {plan.WHOLE: self._answer_own(count), **self._ablate_kinds(count)}
        recipe, found = replace(self.light, clusters=count), self._find(count)
        raw = plan.RAW_ABLATION
        kept[raw] = self._answer(raw, recipe, lambda: raw_clusters(found.transfer, len(found.clusters)))
        shared = self.bench.past.shared_labels is not None
        for row, knobs in plan.score_ablations(recipe, len(self.bench.past), shared_labels=shared).items():
            kept[row] = self._ablate_recipe(row, replace(recipe, **knobs))
        return kept

    def deal_at_random(self, count: int | None, draws: int) -> list[Answers]:
        """The same sizes of clusters, the tasks dealt at random, so many times."""
        recipe, answers = replace(self.light, clusters=count), []
        for draw in range(draws):
            name = f"random clusters {draw}"
            found = answer_by_clusters(self.bench, name, recipe, name, partial(self._mix_at_random, count, draw))
            answers.append(found[MAIN])
        return answers

    def _mix_at_random(self, count: int | None, draw: int) -> Serving:
        """Metrics of clusters dealt at random, with all else from the clusters found."""
        learning, work, own = self.bench.learning, self.bench.work, self.candidates(count)
        clusters = random_clusters(self._find(count).clusters, seed=draw)
        learned, held_out = train_on(clusters, learning, work, self.light)
        linear = train_linear_metrics(learning.material, clusters, work, base=learning.base, held_out=held_out)
        return Serving((*learned, *linear, *own.tuned, *own.unlearned), own.settings)

    def _find(self, count: int | None) -> Found:
        return find_clusters(self.bench.learning, self.bench.work, replace(self.light, clusters=count))

    def _train(self, clusters: Clusters, recipe: Recipe) -> Candidates:
        return train_candidates(self.bench.learning, clusters, self.bench.work, recipe)

    def _answer_own(self, count: int | None) -> Answers:
        recipe = replace(self.light, clusters=count)
        return answer_by_clusters(
            self.bench, f"{count} clusters", recipe, OWN, lambda: _serving(self.candidates(count))
        )[MAIN]

    def _answer(self, row: str, recipe: Recipe, cluster: Callable[[], Clusters]) -> Answers:
        return answer_by_clusters(self.bench, row, recipe, row, lambda: _serving(self._train(cluster(), recipe)))[MAIN]

    def _answer_as_published(self, counts: Sequence[int], count: int) -> Answers:
        def make() -> dict[str, Method]:
            tried = self.published(counts)
            if count in tried:
                return {plan.PUBLISHED: published.mix_as_published(tried[count].metrics, tried[count].descent.answer)}
            metrics, _ = published.train_cluster_metrics(self.bench.learning, self.bench.work, recipe, self.network)
            return {plan.PUBLISHED: published.mix_as_published(metrics, UNTUNED.answer)}

        recipe = replace(self._as_published, clusters=count)
        asked = {plan.PUBLISHED: self._asked(recipe, counts)}
        return self.bench.answer(f"{count} clusters, as published", asked, make)[plan.PUBLISHED]

    def _answer_by_asap(self, counts: Sequence[int], count: int) -> Answers:
        """ASAP-style clusters, mixed as the clusters found are: by the descent chosen for as many of them."""

        def make() -> dict[str, Method]:
            tried = self.published(counts)
            descent = tried[count].descent if count in tried else UNTUNED
            metrics = asap_metrics(self.bench, recipe, self.network)
            return {plan.ASAP: published.mix_as_published(metrics, descent.answer)}

        recipe = replace(self._as_published, clusters=count)
        asked = {plan.ASAP: self._asked(recipe, counts)}
        return self.bench.answer(f"{count} ASAP-style clusters", asked, make)[plan.ASAP]

    @property
    def _as_published(self) -> Recipe:
        return plan.as_published(self.recipe, len(self.bench.past))

    def _asked(self, recipe: Recipe, counts: Sequence[int]) -> dict[str, Any]:
        return {"recipe": recipe.as_dict(), "counts": list(counts), "network": asdict(self.network)}

    def _ablate_recipe(self, row: str, recipe: Recipe) -> Answers:
        learning, work = self.bench.learning, self.bench.work
        return self._answer(row, recipe, lambda: find_clusters(learning, work, recipe).clusters)

    def _ablate_kinds(self, count: int | None) -> dict[str, Answers]:
        """The mix without the metrics of one kind."""
        differ = self.bench.past.shared_labels is None
        absent = (LINEAR, REGRESSION) if differ else (TUNED,)  # these tasks have none, or it has no share to lose
        rows = {row: kind for row, kind in plan.TAKEN_OUT.items() if kind not in absent}

        def make() -> dict[str, Method]:
            serving = _serving(self.candidates(count))
            return {row: serve(_without(serving, kind)) for row, kind in rows.items()}

        knobs = {"recipe": replace(self.light, clusters=count).as_dict(), "clusters": OWN}
        return self.bench.answer("without a kind of metric", dict.fromkeys(rows, knobs), make)


def _serving(tried: Candidates) -> Serving:
    return Serving(tried.metrics, tried.settings)


def _without(serving: Serving, kind: str) -> Serving:
    """Without the metrics of a kind, and with no share for them."""
    metrics = tuple(metric for metric in serving.metrics if metric.kind != kind)
    return replace(
        serving, metrics=metrics, settings=replace(serving.settings, shares={**serving.settings.shares, kind: 0.0})
    )
