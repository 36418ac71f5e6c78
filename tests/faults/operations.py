"""What is disturbed: each operation with the state it starts from, and what must hold after a fault and at the end."""

import shutil
import warnings
from dataclasses import replace
from pathlib import Path

from injection import disturb, operations_of

import manymetrics as mm
from manymetrics.errors import InputError
from manymetrics.model import load_classifier, load_model, load_origin
from planted_bank import planted_bank, planted_task
from tiny_sentence import vocabulary_of, write_folder


class Operation:
    """Something that is done to files below a folder."""

    def prepare(self, folder: Path) -> None:
        """Make the old state."""
        folder.mkdir()

    def act(self, folder: Path) -> None:
        """Do it."""

    def check(self, folder: Path) -> None:
        """Complain of anything but the old state or the new one."""

    def again(self, folder: Path) -> None:
        """Give the same command again, after a fault."""
        self.act(folder)


class SaveModel(Operation):
    """A model saved over an older one."""

    def __init__(self, make_model, shots) -> None:
        self.old, self.new = (make_model(letter_buckets=64, seed=seed) for seed in (0, 1))
        self.new = mm.MetricModel(self.new.predictor, replace(self.new.origin, bank_fingerprint="new"))
        self.known = {(one.fingerprint, one.origin.bank_fingerprint) for one in (self.old, self.new)}

    def prepare(self, folder: Path) -> None:
        self.old.save(folder / "model")

    def act(self, folder: Path) -> None:
        self.new.save(folder / "model")

    def check(self, folder: Path) -> None:
        model = load_model(folder / "model")
        assert (model.fingerprint, model.origin.bank_fingerprint) in self.known, "neither the old model nor the new one"


class SaveNewModel(SaveModel):
    """A model saved where there was none."""

    def prepare(self, folder: Path) -> None:
        folder.mkdir()

    def check(self, folder: Path) -> None:
        if (folder / "model").exists():
            super().check(folder)


class SaveClassifier(Operation):
    """A classifier saved over an older one."""

    def __init__(self, make_model, shots) -> None:
        self.model = make_model(letter_buckets=64)
        self.old = self.model.adapt(shots.texts[3:8], shots.labels[3:8])
        self.new = self.model.adapt(shots.texts, shots.labels)

    def prepare(self, folder: Path) -> None:
        self.old.save(folder / "classifier")

    def act(self, folder: Path) -> None:
        self.new.save(folder / "classifier")

    def check(self, folder: Path) -> None:
        found = list(load_classifier(folder / "classifier", self.model).classes_)
        assert found in (list(self.old.classes_), list(self.new.classes_)), found


class Import(Operation):
    """Two tasks brought into a bank that has two. A task is there whole or not at all, whichever the moment."""

    def __init__(self, make_model, shots) -> None:
        self.old = planted_bank(1)
        self.new = mm.TaskBank(tuple(planted_task(f"new-{n}", "animal", size=2, seed=n) for n in range(2)))
        self.known = {task.name: task for task in (*self.old, *self.new)}

    def prepare(self, folder: Path) -> None:
        folder.mkdir()
        mm.write_bank(self.old, folder / "bank")
        (folder / "all.jsonl").write_text("".join(mm.export_lines(self.new)), encoding="utf-8")

    def act(self, folder: Path) -> None:
        found = mm.import_tasks(folder / "all.jsonl", task_column="task")
        mm.add_to_bank(found.bank, folder / "bank")

    def again(self, folder: Path) -> None:
        try:
            self.act(folder)
        except InputError:
            if set(self.new.names) - set(mm.load_tasks(folder / "bank").names):
                raise  # only where all is there may it say so

    def check(self, folder: Path) -> None:
        bank = mm.load_tasks(folder / "bank")
        assert set(self.old.names) <= set(bank.names), "an old task is lost"
        for task in bank:
            wanted = self.known[task.name]
            assert (task.train, task.valid, task.test) == (wanted.train, wanted.valid, wanted.test), task.name


class ImportNew(Import):
    """The same where there was no bank."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        shutil.rmtree(folder / "bank")
        self.old = mm.TaskBank(())

    def check(self, folder: Path) -> None:
        if list((folder / "bank").glob("*.train.jsonl")):
            super().check(folder)


class Learn(Operation):
    """A learning with a run, and the model it ends with, where there was nothing before."""

    def __init__(self, place: Path) -> None:
        """The default recipe, shortened, with a small sentence encoder in this folder."""
        self.bank = planted_bank()
        vocabulary = vocabulary_of(self.bank.without_tests())
        encoder = write_folder(place / "encoder", pooling="mean", vocabulary=vocabulary, width=16)
        self.recipe = mm.Recipe(encoder=str(encoder), projection_steps=2, own_steps=2, clusters=2, shots=2)

    def act(self, folder: Path) -> None:
        self.learn(folder, self.recipe)

    def learn(self, folder: Path, recipe) -> mm.MetricModel:
        mm.model.check_output_folders(folder / "bank", out=folder / "model", run=folder / "run")
        model = mm.learn_metrics(self.bank, recipe, run=folder / "run")
        model.save(folder / "model")
        return model

    def check(self, folder: Path) -> None:
        if (folder / "run" / "learned").exists():
            load_origin(folder / "run" / "learned")
        if (folder / "model").exists():
            load_model(folder / "model").origin  # noqa: B018 - it is read here


class LearnAgain(Learn):
    """The same over a finished run of another recipe, and over its model."""

    def prepare(self, folder: Path) -> None:
        folder.mkdir()
        self.learn(folder, replace(self.recipe, projection_steps=1))

    def check(self, folder: Path) -> None:
        assert load_origin(folder / "run" / "learned").recipe.projection_steps in (1, 2)
        assert load_model(folder / "model").recipe.projection_steps in (1, 2)


def files(folder: Path) -> dict[str, bytes]:
    """All that is below a folder; a lock is whoever's has it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


class Loop:
    """One operation, disturbed at any of its file operations; `place` is a folder for all that it needs."""

    def __init__(self, operation: Operation, place: Path) -> None:
        self.operation, self.place = operation, place
        with warnings.catch_warnings(action="ignore"):
            operation.prepare(place / "old")
            shutil.copytree(place / "old", place / "warm")
            operation.act(place / "warm")  # so that all is loaded that will be
            shutil.copytree(place / "old", place / "new")
            self.steps = operations_of(operation.act, place / "new")
        self.wanted = files(place / "new")

    def try_at(self, mode: str, at: int) -> str | None:
        """What is wrong after a fault at one operation; None where nothing is."""
        folder, moment = self.place / "tried", "during the fault"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.place / "old", folder)
        try:
            with warnings.catch_warnings(action="ignore"):
                problem = disturb(self.operation.act, folder, mode, at)
                if problem is not None and not isinstance(problem, mm.ManyMetricsError | KeyboardInterrupt):
                    raise problem
                moment = "afterwards"
                self.operation.check(folder)
                moment = "when the same command is given again"
                self.operation.again(folder)
            found = files(folder)
            odd = [name for name in {*found, *self.wanted} if found.get(name) != self.wanted.get(name)]
            assert not odd, f"it ends otherwise: {sorted(odd)}"
        except Exception as wrong:
            return f"{mode} at {at} ({self.steps[at]}), {moment}: {type(wrong).__name__}: {wrong}"
        return None

    def spread(self, count: int) -> list[int]:
        """So many operations, from the first to the last; all of them if there are fewer."""
        last = len(self.steps) - 1
        return sorted({round(last * step / (count - 1)) for step in range(count)})
