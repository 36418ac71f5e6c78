"""Meta-validation tasks -> the parts of a model that are chosen, not trained.

Which of the bank's tasks are kept from training, the episodes drawn from them, the temperature of the metrics that
learn nothing from labels, and the settings of the mix. To learn when no cluster fits, each episode is answered a second
time without the metrics of its own cluster. The targets of any evaluation are nowhere near.

Episodes have 1 to 50 examples a label and, where several tasks are taken together, up to 150 labels: what a member is
worth depends on both.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.encode.ngrams import LetterEncoder
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.errors import InputError
from manymetrics.specialize.metric import FROZEN, LEARNED, LEXICAL, Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.values import Bools, Clusters, Episode, Examples, Floats, Ints, LabelledTexts, Task, TaskBank, Texts
from manymetrics.weigh.ensemble import Ensemble
from manymetrics.weigh.fallback import RegressionFallback
from manymetrics.weigh.mix import fit_weights
from manymetrics.weigh.names import enough_evidence, names_speak, say_something
from manymetrics.weigh.pooling import Coefficients, PooledEpisode, ProblemSize, answer_with, group_logs, learn_exponents
from manymetrics.weigh.published import tune_descent
from manymetrics.weigh.routing import Routing, route_texts
from manymetrics.weigh.settings import NEVER, MixSettings

FEWEST_TO_PART = 4  # tasks a cluster must have before one of them is held out
TEMPERATURES = (4.0, 6.0, 9.0, 14.0, 20.0, 30.0)
DEFAULT_TEMPERATURE = 9.0
FURTHER = 20  # examples of any label beside one of each, in an episode as people pose them
MANY_SHOTS = (10, 20, 50)  # examples of each label, in episodes of tasks that have as many
MOST_EXAMPLES = 1200  # in an episode
MANY_LABELS = (50, 150)  # in episodes of several tasks taken together
QUERIES = 150  # texts to answer in an episode, at most
PRIOR_SHOTS = (0.5, 1.5, 5.0, 15.0, 50.0)
LIKELIHOOD_TEMPERATURES = (1.5, 5.0, 15.0, 50.0)  # people pick their examples: each tells less than one drawn at random
_NORMAL = 1.96  # 95 %
THRESHOLDS = (NEVER, 0.05, 0.1, 0.2, 0.3, 0.4)


def hold_out_tasks(clusters: Clusters, sources: Mapping[str, str], share: float, *, seed: int) -> tuple[str, ...]:
    """The tasks kept from the metrics' training: a share of every cluster that has tasks to spare.

    Tasks of one source are kept together (`sources` names each task's): what is chosen on them is meant for sources not
    seen before. Each source's lot is drawn from its name, so adding a task does not redraw the others'.
    """
    spare = {number: _most_held_out(len(group), share) for number, group in enumerate(clusters)}
    groups: dict[str, list[tuple[str, int]]] = {}
    for name, cluster in zip(clusters.names, clusters.labels.tolist(), strict=True):
        groups.setdefault(sources[name], []).append((name, cluster))
    held: list[str] = []
    for source in sorted(groups, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        taken = Counter(cluster for _, cluster in groups[source])
        if all(spare[cluster] >= count for cluster, count in taken.items()):
            held += [name for name, _ in groups[source]]
            spare = {cluster: left - taken[cluster] for cluster, left in spare.items()}
    return tuple(sorted(held))


def _most_held_out(size: int, share: float) -> int:
    """How many tasks of a cluster can be spared."""
    if size < FEWEST_TO_PART or share == 0:
        return 0
    return min(max(1, round(share * size)), size - 1)


def draw_episodes(bank: TaskBank, held_out: Sequence[str], *, shots: int, seed: int) -> list[Episode]:
    """Few-shot problems from every held-out task: with all the shots, with fewer, and as people pose them.

    People give one example of a rare label and many of a common one; the paper's intent targets are made so.
    """
    episodes = []
    for name in held_out:
        task = bank[name]
        rng = np.random.default_rng(list(hashlib.sha256(f"{seed} {task.fingerprint}".encode()).digest()))
        sizes = [(shots, 0), (max(1, shots - 2), 0), (1, FURTHER), (1, 0)]
        sizes += [(many, 0) for many in MANY_SHOTS if _has_shots(task, many)]
        episodes += [_draw_episode(task, size, further, rng) for size, further in sizes]
    if bank.shared_labels is None:
        episodes += _draw_many_labels([bank[name] for name in held_out], shots, seed)
    return [episode for episode in episodes if len(episode.query)]


def _has_shots(task: Task, shots: int) -> bool:
    counts = np.bincount(np.concatenate([task.labelled_train.labels, task.labelled_valid.labels]))
    return float(np.median(counts)) > shots and shots * len(counts) <= MOST_EXAMPLES


def _draw_many_labels(tasks: Sequence[Task], shots: int, seed: int) -> list[Episode]:
    """Few-shot problems with more labels than one task has: labels of one name are one label."""
    episodes: list[Episode] = []
    for most in MANY_LABELS:
        joined: list[Task] = []
        for task in sorted(tasks, key=lambda task: hashlib.sha256(f"{seed} {most} {task.name}".encode()).digest()):
            if len({label for one in (*joined, task) for label in one.labels}) <= most:
                joined.append(task)
        if len(joined) < 2 or len({label for one in joined for label in one.labels}) < most / 2:
            continue
        together = Task(joined[0].name, Examples.join([part for one in joined for part in (one.train, one.valid)]))
        every = [label for one in joined for label in one.labels]
        names = Texts.join([one.label_names for one in joined]).take([every.index(label) for label in together.labels])
        rng = np.random.default_rng(list(hashlib.sha256(f"{seed} {together.fingerprint}".encode()).digest()))
        episodes += [_draw_episode(together, size, 0, rng, names) for size in (1, shots)]
    return episodes


def _draw_episode(task: Task, shots: int, further: int, rng: np.random.Generator,
                  names: Texts | None = None) -> Episode:  # fmt: skip
    examples = LabelledTexts.join([task.labelled_train, task.labelled_valid])
    chosen = [rng.permutation(np.flatnonzero(examples.labels == label)) for label in range(len(task.labels))]
    support = np.concatenate([rows[: max(1, min(shots, len(rows) - 1))] for rows in chosen])
    others = rng.permutation(np.setdiff1d(np.arange(len(examples)), support))
    more = min(further, len(others) // 2)  # half of them at least are left to be answered
    return Episode(
        task.name,
        task.labels,
        examples.take(np.concatenate([support, others[:more]])),
        examples.take(others[more : more + QUERIES]),
        task.label_names if names is None else names,
    )


def choose_unlearned_metrics(bank: TaskBank, encoders: Mapping[str, Encoder],
                             episodes: Sequence[Episode]) -> list[Metric]:  # fmt: skip
    """The metrics that learn nothing from labels: one of each encoder, by name, and letters weighted by the bank."""
    letters = LetterEncoder.from_texts(Texts.join([task.train.texts for task in bank]))
    metrics = [
        *(SimilarityMetric(name, FROZEN, one, PROTOTYPICAL, DEFAULT_TEMPERATURE) for name, one in encoders.items()),
        SimilarityMetric("letters", LEXICAL, letters, PROTOTYPICAL, DEFAULT_TEMPERATURE),
    ]
    return [_with_best_temperature(metric, episodes) for metric in metrics]


def _with_best_temperature(metric: SimilarityMetric, episodes: Sequence[Episode]) -> Metric:
    """The temperature under which the right answers of the episodes are likeliest."""
    if not episodes:
        return metric
    logits = [_logits(metric, episode) for episode in episodes]
    likelihoods = [
        np.mean([_log_likelihood(temperature * own, episode) for own, episode in zip(logits, episodes, strict=True)])
        for temperature in TEMPERATURES
    ]
    return replace(metric, temperature=TEMPERATURES[int(np.argmax(likelihoods))])


def _logits(metric: SimilarityMetric, episode: Episode) -> Floats:
    """What the temperature multiplies, up to a constant for each text: (texts, classes)."""
    coolest, support = min(TEMPERATURES), episode.support
    fitted = replace(metric, temperature=coolest).learn(Features(support.texts), support.labels, episode.classes)
    return np.log(fitted.probabilities(Features(episode.query.texts))) / coolest


def _log_likelihood(logits: Floats, episode: Episode) -> float:
    right = softmax(logits, axis=1)[np.arange(len(episode.query)), episode.query.labels]
    return float(np.log(np.maximum(right, 1e-12)).mean())


@dataclass(frozen=True, eq=False)
class AnsweredEpisode:
    """Every member's answers to one episode, and those of the single-task model to fall back to."""

    kinds: tuple[str, ...]  # of the members
    groups: tuple[str, ...]  # of the members: see `Member.group`
    sizes: tuple[float, ...]  # what each counts for within its kind before any shot is seen
    clusters: Ints | None  # (members,): those with the same number speak for one cluster; None where none does
    leave_one_out: Floats  # (shots, members, classes): each shot as though it had not been given
    labels: Ints  # (shots,)
    probabilities: Floats  # (texts, members, classes)
    fallback: Floats  # (texts, classes): the single-task model
    answers: Ints  # (texts,)


def answer_episode(metrics: Sequence[Metric], episode: Episode, routing: Routing | None = None, *,
                   names: bool = False, fallback: Floats | None = None) -> AnsweredEpisode:  # fmt: skip
    """Every metric's answers to an episode, and the regression's on all of them; `fallback`: what that one answers."""
    told = episode.names if names else None
    route = route_texts(routing, unlearned(metrics)[0].encoder, episode.support.texts, told) if routing else None
    ensemble = Ensemble(metrics, episode.support, episode.classes, names=told, route=route)
    texts = ensemble.compare(Features(episode.query.texts))
    if fallback is None:
        fallback = regression_fallback(metrics, ensemble, len(episode.classes)).probabilities(texts)
    return AnsweredEpisode(
        ensemble.kinds,
        ensemble.groups,
        ensemble.sizes,
        ensemble.clusters,
        ensemble.leave_one_out,
        episode.support.labels,
        ensemble.probabilities(texts, np.arange(len(ensemble.members))),
        fallback,
        episode.query.labels,
    )


def unlearned(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that learned nothing from labels: what judges the scope, and what a fallback stands on."""
    found = [metric for metric in metrics if not metric.tasks]
    if not found:
        raise InputError(
            "No metric of this model is free of other tasks' labels, so neither the scope nor a fallback can be had. "
            "Add a metric of a frozen encoder."
        )
    return found


def regression_fallback(metrics: Sequence[Metric], ensemble: Ensemble, classes: int) -> RegressionFallback:
    """The single-task model, on the encoders that learned nothing from labels."""
    encoders, shots = [metric.encoder for metric in unlearned(metrics)], len(ensemble.leave_one_out)
    return RegressionFallback(encoders, ensemble.examples, ensemble.labels, classes, shots)


def choose_settings(metrics: Sequence[Metric], episodes: Sequence[Episode], clusters: Clusters,
                    routing: Routing | None = None) -> MixSettings:  # fmt: skip
    """The settings of the mix that answer the held-out tasks' episodes best; `routing` knows nothing of these tasks.

    Taking the metrics of its own cluster away makes a held-out task one that no cluster fits.
    """
    shared = any(isinstance(metric, SharedLabelMetric) for metric in metrics)
    answered = [answer_episode(metrics, episode, routing) for episode in episodes]
    both = list(zip(episodes, (one.fallback for one in answered), strict=True))
    named = [] if shared else [
        answer_episode(metrics, episode, routing, names=True, fallback=alone) for episode, alone in both
    ]  # fmt: skip
    out_of_clusters: list[AnsweredEpisode] = []
    for episode, alone in both:
        number = int(clusters.labels[clusters.names.index(episode.task)])
        others = [metric for metric in metrics if metric.cluster != number]
        if len(others) < len(metrics):
            out_of_clusters.append(answer_episode(others, episode, routing, fallback=alone))
    descent = tune_descent(metrics, episodes)
    settings = replace(tune_settings(answered, out_of_clusters), paper_rate=descent.rate, paper_steps=descent.steps)
    if not named:
        return settings
    exponents = tune_exponents(named, settings.prior_shots)
    return replace(settings, exponents=exponents, names_count=_names_count(unlearned(metrics)[0].encoder, episodes))


def _names_count(encoder: Encoder, episodes: Sequence[Episode]) -> bool:
    """Whether the names of the bank's labels say something about its texts, in most episodes."""
    speak = [
        names_speak(encoder, one.query.texts, one.query.labels, one.names) > enough_evidence(len(one.classes))
        for one in episodes
        if say_something(one.names)
    ]
    return 2 * sum(speak) > len(episodes)


def tune_exponents(episodes: Sequence[AnsweredEpisode], prior_shots: float) -> dict[str, Coefficients]:
    """How much each group of members is worth, by examples a label and number of labels."""
    groups = list(dict.fromkeys(episodes[0].groups))
    return learn_exponents([pool_groups(episode, prior_shots) for episode in episodes], groups)


def pool_groups(episode: AnsweredEpisode, prior_shots: float) -> PooledEpisode:
    """What every group answers, its members mixed by what the shots say of them."""
    groups = list(dict.fromkeys(episode.groups))
    places, mixed = np.array([groups.index(group) for group in episode.groups]), MixSettings(prior_shots=prior_shots)
    prior = mixed.prior(episode.kinds, episode.sizes)
    weights = mixed.fit(episode.leave_one_out, episode.labels, prior=prior, clusters=None, groups=episode.groups,
                        names=False, tolerance=1e-4).weights  # fmt: skip
    classes = episode.probabilities.shape[2]
    size = ProblemSize(len(episode.labels) / classes, classes)
    return PooledEpisode(size, group_logs(episode.probabilities, weights, places), episode.answers)


def tune_settings(episodes: Sequence[AnsweredEpisode], out_of_clusters: Sequence[AnsweredEpisode] = ()) -> MixSettings:
    """The settings under which the right answers of the episodes are likeliest.

    Likelihood tells settings apart by every text, accuracy only by those near the border. `out_of_clusters` are
    episodes that no learned metric fits; the threshold is chosen on both sorts together.
    """
    if not episodes:
        return MixSettings()
    if episodes[0].clusters is None:
        even = MixSettings(threshold=NEVER)
        tried = [
            replace(even, prior_shots=shots, exponents_without_names=tune_exponents(episodes, shots))
            for shots in (PRIOR_SHOTS if _several(episodes[0].groups) else PRIOR_SHOTS[-1:])
        ]
    else:
        even = MixSettings(tune_shares(episodes), threshold=NEVER)
        tried = [replace(even, likelihood_temperature=temperature) for temperature in LIKELIHOOD_TEMPERATURES]
    chosen = tried[int(np.argmax([log_likelihoods(episodes, settings).mean() for settings in tried]))]
    return replace(chosen, threshold=_tune_threshold([*episodes, *out_of_clusters], chosen))


def _several(groups: Sequence[str]) -> bool:
    return len(set(groups)) < len(groups)


def answer_likelihood(metrics: Sequence[Metric], episodes: Sequence[Episode], settings: MixSettings) -> float:
    """The mean log-likelihood of the right answers to some episodes."""
    return float(log_likelihoods([answer_episode(metrics, episode) for episode in episodes], settings).mean())


def log_likelihoods(episodes: Sequence[AnsweredEpisode], settings: MixSettings) -> Floats:
    """The mean log-likelihood of the right answers to each episode: (episodes,)."""
    return np.array([_judge(_mix(episode, settings), episode)[1] for episode in episodes])


def tune_shares(episodes: Sequence[AnsweredEpisode]) -> dict[str, float]:
    """How much each kind of metric is worth: the shares under which the right answers are likeliest."""
    kinds = list(dict.fromkeys(episodes[0].kinds))
    right = []
    for episode in episodes:
        own = episode.probabilities[np.arange(len(episode.answers)), :, episode.answers]  # (texts, members)
        prior = MixSettings().prior(episode.kinds, episode.sizes)  # (members,)
        members = [prior * (np.array(episode.kinds) == kind) for kind in kinds]
        right.append(np.stack([own @ (among / among.sum()) for among in members], axis=1))  # (texts, kinds)
    weights = fit_weights(np.concatenate(right), np.full(len(kinds), 1 / len(kinds)), prior_shots=1.0).weights
    return {kind: round(float(weight), 4) for kind, weight in zip(kinds, weights, strict=True)}


@dataclass(frozen=True)
class Lift:
    """How far a metric rises above guessing on the shots: 1 is perfect, 0 is no better than chance."""

    lift: float
    highest: float  # that it may be in truth: the upper end of a 95 % interval


def lift_over_chance(leave_one_out: Floats, labels: Ints, learned: Bools) -> Lift:
    """The lift of the best learned metric.

    The paper asks for 20 % accuracy, which with two labels anything reaches; so accuracy is taken from chance = 0.
    Infinite where the shots cannot tell (each label has a single example, or there is no learned metric).
    """
    known = np.isfinite(leave_one_out).all(axis=(1, 2))
    if not known.any() or not learned.any():
        return Lift(float(np.inf), float(np.inf))
    guesses = leave_one_out[known][:, learned].argmax(axis=2)  # (shots, learned metrics)
    right = int((guesses == labels[known][:, None]).sum(axis=0).max())
    chance = 1 / leave_one_out.shape[2]
    accuracies = np.array([right / known.sum(), wilson(right, int(known.sum()))[1]])
    return Lift(*((accuracies - chance) / (1 - chance)).tolist())


def wilson(right: int, tried: int) -> tuple[float, float]:
    """A 95 % interval for a share: Wilson's, which holds for few tries."""
    if not tried:
        return float("nan"), float("nan")
    share, z2 = right / tried, _NORMAL**2
    middle = (share + z2 / (2 * tried)) / (1 + z2 / tried)
    half = _NORMAL * np.sqrt(share * (1 - share) / tried + z2 / (4 * tried**2)) / (1 + z2 / tried)
    return float(max(middle - half, 0)), float(min(middle + half, 1))


def _tune_threshold(episodes: Sequence[AnsweredEpisode], settings: MixSettings) -> float:
    lifts = np.array([_lift(episode) for episode in episodes])
    mixed = np.array([_judge(_mix(episode, settings), episode)[0] for episode in episodes])
    alone = np.array([_judge(episode.fallback, episode)[0] for episode in episodes])
    gains = [float(np.where(lifts < threshold, alone, mixed).mean()) for threshold in THRESHOLDS]
    return THRESHOLDS[int(np.argmax(gains))]


def _lift(episode: AnsweredEpisode) -> float:
    return lift_over_chance(episode.leave_one_out, episode.labels, np.array(episode.kinds) == LEARNED).lift


def _mix(episode: AnsweredEpisode, settings: MixSettings) -> Floats:
    prior = settings.prior(episode.kinds, episode.sizes)
    shots = episode.leave_one_out
    mix = settings.fit(shots, episode.labels, prior=prior, clusters=episode.clusters, groups=episode.groups,
                       names=False, tolerance=1e-4)  # fmt: skip
    return answer_with(mix, episode.probabilities)


def _judge(probabilities: Floats, episode: AnsweredEpisode) -> tuple[float, float]:
    right = probabilities[np.arange(len(episode.answers)), episode.answers]
    accuracy = float(np.mean(probabilities.argmax(axis=1) == episode.answers))
    return accuracy, float(np.log(np.maximum(right, 1e-12)).mean())
