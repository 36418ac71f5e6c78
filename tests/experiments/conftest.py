"""The experiments, which are not installed with the package, and the folder of one whose results were made up."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import manymetrics
from manymetrics.model import save_origin
from manymetrics.recipe import ConvolutionSettings, Recipe
from planted_model import planted_model

sys.path.insert(0, str(Path(manymetrics.__file__).parents[2]))

METHODS = {
    "RobustTC-FSL": ("ours", 0.8312, 0.871),
    "Adaptive RobustTC-FSL": ("ours", None, 0.868),
    "RobustTC-FSL, the paper's mix": ("ours", 0.8312, 0.846),
    "single-task CNN": ("paper", 0.6577, 0.702),
    "single-task fastText": ("paper", 0.6313, 0.689),
    "holistic MTL-CNN": ("paper", 0.7659, 0.781),
    "Matching Network": ("paper", 0.6573, 0.724),
    "Prototypical Network": ("paper", 0.6815, 0.735),
    "combination of single-task encoders": ("paper", 0.8014, 0.822),
    "ASAP-style clusters": ("paper", 0.8253, 0.838),
    "majority class": ("today", None, 0.781),
    "TF-IDF + logistic regression": ("today", None, 0.804),
    "frozen vectors + prototypes": ("today", None, 0.752),
    "frozen vectors + logistic regression": ("today", None, 0.791),
    "SetFit": ("today", None, 0.857),
}


def estimate(value, width):
    return {"value": value, "low": value - width, "high": value + width}


def row(method, group, paper, value, **other):
    scores = {"accuracy": value, "balanced_accuracy": value - 0.12, "macro_f1": value - 0.15}
    return {
        "method": method, "group": group, "paper": paper, "applies": True, "note": "", "seconds": 3000 * value - 1800,
        **{score: estimate(found, 0.03) for score, found in scores.items()},
        "over_seeds": {score: estimate(found, 0.008) for score, found in scores.items()},
        "per_seed": [{"seed": seed, **scores} for seed in (0, 1, 2)],
        "gain": estimate(0.871 - value, 0.015), **other,
    }  # fmt: skip


def made_up_results(names, *, clusters=5, targets=12, seed=0):
    """What `reproduce` might write, with numbers out of thin air."""
    rng = np.random.default_rng(seed)
    rows = [row(method, *about) for method, about in METHODS.items()]
    rows[0]["gain"] = None
    rows[9] |= {"applies": False, "note": "needs one set of labels for all tasks", "accuracy": None,
                "balanced_accuracy": None, "macro_f1": None, "over_seeds": None, "gain": None}  # fmt: skip
    metrics = [f"cluster-{k}" for k in range(clusters)] + ["word-vectors", "projection"]
    domains = ("books", "dvd", "electronics", "kitchen_housewares")
    return {
        "format": 2, "experiment": "amazon",
        "command": "python -m experiments reproduce amazon --data amazon --seeds 3 --out out",
        "version": "0.1.0", "versions": {"python": "3.11.2", "numpy": "2.2.0", "torch": "2.13.0"}, "data": "beef" * 16,
        "left_out": [{"name": "toys_games.t2", "reason": "toys_games.t2.train.tsv is missing"}],
        "notes": ["Always answering the commonest label is right on 78.1 % of the texts."], "seeds": [0, 1, 2],
        "quick": False, "seconds": 5423.0, "recipe": Recipe(clusters=clusters).as_dict(), "rows": rows,
        "targets": [
            {
                "task": f"{domains[n % 4]}.t{(2, 4, 5)[n // 4 % 3]}", "labels": 2, "shots": 10, "texts": 829 + 37 * n,
                "majority": float(rng.uniform(0.6, 0.94)),
                "accuracy": {m: float(np.clip(about[2] + rng.normal(0, 0.05), 0, 1)) for m, about in METHODS.items()
                             if m != "ASAP-style clusters"},
                "weights": dict(zip(metrics, rng.dirichlet(np.full(len(metrics), 0.4)).tolist(), strict=True)),
                "fallback": "No cluster fits: the best metric is right on 5 of 10 examples." if n == 7 else None,
                "nearest": [{"task": names[(7 * n + k) % len(names)], "cosine": 0.9 - 0.07 * k} for k in range(5)],
            }
            for n in range(targets)
        ],
        "by_clusters": [
            {"method": method, "clusters": k, "accuracy": estimate(top - 0.02 * abs(np.log(k / 5)), 0.02),
             "balanced_accuracy": estimate(top - 0.1 - 0.02 * abs(np.log(k / 5)), 0.025)}
            for method, top in (("RobustTC-FSL", 0.87), ("ASAP-style", 0.845)) for k in (1, 2, 3, 5, 10, 20, 30)
        ],
        "ablations": [row("without score filtering", "ours", None, 0.861),
                      row("without completion", "ours", None, 0.855),
                      row("random clusters", "ours", None, 0.829), row("transfer by accuracy", "ours", None, 0.866)],
    }  # fmt: skip


@pytest.fixture(scope="session")
def network_recipe():
    """Small networks over word vectors that need no file."""
    sizes = {"window": 3, "width": 8, "task_steps": 30, "metric_steps": 30, "learning_rate": 0.02}
    networks = ConvolutionSettings(**sizes)
    words = {"encoder": "words", "vectors": "random"}
    return Recipe(representation="convolution", **words, clusters=2, shots=2, convolution=networks)


@pytest.fixture(scope="session")
def with_networks():
    """A function: a recipe with other settings of its networks."""
    return lambda recipe, **settings: replace(recipe, convolution=replace(recipe.convolution, **settings))


@pytest.fixture
def plant(model):
    return lambda **options: planted_model(model, **options)


@pytest.fixture
def experiment(plant, tmp_path):
    """The out folder of an experiment, and its results to be changed."""
    model = plant(tasks=20, clusters=5, share=0.8)
    folder = tmp_path / "out"
    save_origin(model.origin, folder / "learned")
    results = made_up_results(model.clusters.names)
    (folder / "results.json").write_text(json.dumps(results))
    return folder, results
