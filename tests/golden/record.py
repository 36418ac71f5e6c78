"""Numbers of learning and answering on planted banks, as arrays in a file that a test compares with.

    python tests/golden/record.py             writes numbers.npz anew, where numbers are meant to change
    python tests/golden/record.py --compare   prints the largest difference of each array to what is recorded

Content: S, X and the clusters of two banks (tasks with labels of their own, tasks with shared labels), and for eight
ways to adapt a classifier its weights, and the probabilities and scope of nine texts, before and after saving.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import manymetrics as mm
from planted_bank import planted_bank, planted_task
from tiny_sentence import vocabulary_of, write_folder

NUMBERS = Path(__file__).parent / "numbers.npz"
TEXTS = [
    "the crimson here", "some emerald", "azure so very", "", "nothing of it", "CRIMSON THE HERE", "crimson " * 300,
    "красный цвет", "robin and salmon",
]  # fmt: skip
SETTINGS = {"projection_steps": 60, "projection_rate": 5e-3, "own_steps": 20, "own_rate": 1e-2, "p1": 0.1, "p2": 0.1,
            "shots": 2, "clusters": 2}  # fmt: skip


def record() -> dict[str, np.ndarray]:
    """All arrays by name."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        bank = planted_bank(6, size=10).without_tests()
        shared = mm.TaskBank(
            tuple(planted_task(f"colour-{n}", "colour", size=8, seed=n) for n in range(6))
        ).without_tests()
        write_folder(folder / "tiny", pooling="mean", vocabulary=vocabulary_of([*bank, *shared]), width=48)
        recipe = mm.Recipe(encoder=str(folder / "tiny"), **SETTINGS)
        model, labels = mm.learn_metrics(bank, recipe), mm.learn_metrics(shared, recipe)
        new = planted_task("new", "colour", size=4, seed=99)
        return {
            **_learned("bank", model),
            **_learned("shared labels", labels),
            **_answers("default", model.adapt(new.train.texts, new.train.labels)),
            **_answers("no names", model.adapt(new.train.texts, new.train.labels, label_names=False)),
            **_answers("no fallback", model.adapt(new.train.texts, new.train.labels, adaptive=False)),
            **_answers("numbers", model.adapt(new.train.texts, [str(len(label)) for label in new.train.labels])),
            **_answers("counter", model.adapt(new.train.texts, new.train.labels, counter_examples=["robin"])),
            **_answers("shared labels", labels.adapt(new.train.texts, new.train.labels)),
            **_answers("loaded", _again(model, folder).adapt(new.train.texts, new.train.labels)),
            **_answers("random", model.adapt(new.train.texts, np.roll(new.train.labels, 3).tolist())),
        }


def _learned(name: str, model: mm.MetricModel) -> dict[str, np.ndarray]:
    origin = model.origin
    return {
        f"{name}/S": origin.transfer.scores,
        f"{name}/X": origin.similarity.low_rank,
        f"{name}/clusters": origin.clusters.labels.astype(np.float64),
    }


def _answers(name: str, classifier: mm.FewShotClassifier) -> dict[str, np.ndarray]:
    classifier.set_params(reject=0.5)
    return {
        f"{name}/probabilities": classifier.predict_proba(TEXTS),
        f"{name}/scope": classifier.scope_proba(TEXTS),
        f"{name}/rejected": (classifier.predict(TEXTS) == "rejected").astype(np.float64),
        f"{name}/weights": np.array(list(classifier.weights_.values()), dtype=np.float64),
    }


def _again(model: mm.MetricModel, folder: Path) -> mm.MetricModel:
    model.save(folder / "model")
    return mm.load_model(folder / "model")


def differences(numbers: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest difference of each array to the recorded one; infinite where it has another shape or is missing."""
    with np.load(NUMBERS) as recorded:
        before = dict(recorded)
    return {
        name: _difference(numbers[name], before[name]) if name in numbers and name in before else np.inf
        for name in sorted({*numbers, *before})
    }


def _difference(array: np.ndarray, before: np.ndarray) -> float:
    if array.shape != before.shape or (np.isnan(array) != np.isnan(before)).any():
        return np.inf
    return float(np.nanmax(np.abs(array - before), initial=0.0))


if __name__ == "__main__":
    if sys.argv[1:] == ["--compare"]:
        for name, difference in differences(record()).items():
            print(f"{difference:10.2e}  {name}")  # noqa: T201
    else:
        np.savez_compressed(NUMBERS, **record())
