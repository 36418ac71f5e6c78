"""A stand-in for SetFit that is there without the library: answers the label of the example that shares most words."""

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class Fit:
    """One fine-tuning: of which folder, with which seed, on which examples."""

    folder: str
    seed: int = -1
    examples: dict = field(default_factory=dict)

    def predict(self, texts):
        shots = [set(text.split()) for text in self.examples["text"]]
        return [
            self.examples["label"][max(range(len(shots)), key=lambda place: len(shots[place] & set(text.split())))]
            for text in texts
        ]


class Trainer:
    def __init__(self, *, model, args, train_dataset):
        model.seed, model.examples = args.seed, train_dataset

    def train(self):
        sys.stdout.write("noise that nobody is to see")


def plant(monkeypatch):
    """Let `setfit` use the stand-in; gives the list that every fit will be added to."""
    from experiments.baselines import setfit

    fits = []

    def from_pretrained(folder, *, head_params):
        assert head_params == {"class_weight": "balanced"}
        fits.append(Fit(folder))
        return fits[-1]

    library = SimpleNamespace(
        SetFitModel=SimpleNamespace(from_pretrained=from_pretrained),
        TrainingArguments=SimpleNamespace,
        Trainer=Trainer,
    )
    monkeypatch.setattr(setfit, "load_setfit", lambda: (library, SimpleNamespace(from_dict=dict)))
    return fits
