"""A learned model, and the folder it is saved in.

    model/predictor.safetensors    what answers: metrics, encoders, scope, calibration, assignment to clusters
    model/origin.safetensors       where it comes from: recipe, clusters, S, X and E
    model/README.md                a model card
    model/checksums.json           library, kind and format of the folder, and the SHA-256 of every file above

Serving reads the first file only. Nothing in a folder is executed on loading. The network is used where a model stores
a known encoder by its name and this encoder is not on the machine.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from manymetrics.classifier import FewShotClassifier, Predictor
from manymetrics.classifier.few_shot import CLASSIFIER, EXAMPLES, SavedClassifier
from manymetrics.classifier.predictor import (
    MODEL,
    PREDICTOR,
    dump_predictor,
    load_predictor,
    parse_predictor,
    raise_model_error,
    summarize_error,
)
from manymetrics.encode.sources.encoders import list_encoders
from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.model.origin import ORIGIN, STARTER, Origin, load_origin, model_card, model_folder
from manymetrics.recipe import Recipe
from manymetrics.specialize.metric import Metric
from manymetrics.store import check_output_folder, folder_fingerprint, packed, read_folder, write_folder
from manymetrics.store.runs import check_run_folder
from manymetrics.values import Clusters, Similarity, TransferMatrix, html_table

CARD = "README.md"


class MetricModel:
    """What is learned from a bank.

    predictor   the metrics, the assignment to clusters, scope and calibration
    origin      the matrices, clusters and recipe; of a loaded model, read when it is first used
    """

    def __init__(self, predictor: Predictor, origin: Origin | Callable[[], Origin], folder: Path | None = None) -> None:
        self.predictor = predictor
        self._origin = origin
        self.folder = folder  # that it was loaded from

    def __reduce__(self) -> tuple[Any, ...]:
        """A loaded model is pickled as the folder it came from, which must be there when it is unpickled."""
        if self.folder is not None:
            return _load_same, (str(self.folder), self.fingerprint)
        return MetricModel, (self.predictor, self._origin)

    @property
    def origin(self) -> Origin:
        """Where the model comes from."""
        if not isinstance(self._origin, Origin):
            self._origin = self._origin()
        return self._origin

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What the metric of a task is made of."""
        return self.predictor.metrics

    @property
    def clusters(self) -> Clusters:
        """Which tasks of the bank share a metric."""
        return self.origin.clusters

    @property
    def transfer(self) -> TransferMatrix:
        """*S*: how well the representation of one task serves another."""
        return self.origin.transfer

    @property
    def similarity(self) -> Similarity:
        """*X* and *E*."""
        return self.origin.similarity

    @property
    def recipe(self) -> Recipe:
        """How it was learned."""
        return self.origin.recipe

    @property
    def held_out(self) -> tuple[str, ...]:
        """Tasks that the metrics were not trained on."""
        return self.origin.held_out

    @property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        return self.predictor.fingerprint

    def adapt(self, texts: Iterable[str], labels: Iterable[Any], counter_examples: Iterable[str] = (),
              descriptions: Mapping[Any, str] | None = None, *, adaptive: bool = True,
              reject: bool | float = False, margin: float = 0.0, rejected: Any = "auto", label_names: bool = True,
              steps: int | str = 0, class_prior: Mapping[Any, float] | None = None) -> FewShotClassifier:  # fmt: skip
        """A classifier for a new task from a few examples of it; the options are those of `FewShotClassifier`.

        `descriptions` say what labels mean, in place of their names; a label that is described needs no example.
        `steps` are gradient steps on the examples, which take seconds and need torch.
        """
        options = {"adaptive": adaptive, "reject": reject, "margin": margin, "rejected": rejected, "steps": steps}
        classifier = FewShotClassifier(self, label_names=label_names, class_prior=class_prior, **options)
        return classifier.fit(texts, labels, counter_examples, descriptions)

    def save(self, path: str | Path, *, encoder_by_name: bool = False, notes: str = "") -> None:
        """Write the model to a folder in one step; a model that is there already is replaced.

        A model that could not be loaded again is refused before anything is written. With `encoder_by_name`, a known
        sentence encoder is stored by its name and fingerprint, without its weights: loading fetches it. `notes` are
        added to the model card.
        """
        try:
            payload = dump_predictor(self.predictor, tuple(list_encoders()) if encoder_by_name else ())
        except ModelError:
            raise
        except Exception as problem:  # encoders may be defined by users
            raise ModelError(
                f"The model cannot be saved: {summarize_error(problem)}. "
                "The states of its encoders must be finite arrays and JSON values."
            ) from problem
        with raise_model_error(Path(path)):
            fingerprint = parse_predictor(payload).fingerprint
        if fingerprint != self.fingerprint:
            raise ModelError(
                "This model would not be the same after loading: an encoder's from_state does not give back what its "
                "state describes. Fix the encoder."
            )
        files = {PREDICTOR: payload, ORIGIN: self.origin.dump(), CARD: model_card(self.origin, notes).encode()}
        write_folder(Path(path), files, MODEL)

    def __deepcopy__(self, memo: dict[int, Any]) -> "MetricModel":
        """Itself: nothing in it changes, so copies of a classifier can share it."""
        return self

    def __repr__(self) -> str:
        return f"<MetricModel of {len(self.metrics)} metrics, {self.fingerprint[:12]}>"

    def _repr_html_(self) -> str:
        rows = [[metric.name, metric.kind, len(metric.tasks), type(metric.encoder).__name__] for metric in self.metrics]
        return html_table(repr(self), ["metric", "kind", "learned from tasks", "encoder"], rows)


def load_model(path: str | Path = STARTER) -> MetricModel:
    """Read a saved model; one that is damaged, of another library or of another format is refused.

    "starter" is the model that comes with the package; its sentence encoder is fetched once.
    """
    folder = model_folder(path).absolute()
    fingerprint = folder_fingerprint(folder)  # None: a write was interrupted, and reading restores the old folder

    def origin() -> Origin:
        if fingerprint is not None and folder_fingerprint(folder) not in (fingerprint, None):
            raise ModelError(f"{folder} holds another model by now. Load it again.")
        return load_origin(folder)

    return MetricModel(load_predictor(model_folder(path)), origin, folder)


@cache
def _load_same(path: str, fingerprint: str) -> MetricModel:
    """The model of a folder, once in a process, as long as it is the one that was pickled."""
    model = load_model(path)
    if model.fingerprint != fingerprint:
        raise ModelError(
            f"{path} holds another model than the one that was pickled. Load that one, and adapt it again."
        )
    return model


def load_classifier(path: str | Path, model: MetricModel) -> FewShotClassifier:
    """Read a saved classifier, to be used with the model it was adapted from and with no other."""
    payload = read_folder(Path(path), [EXAMPLES], CLASSIFIER)[EXAMPLES]
    with raise_model_error(Path(path), "Copy the classifier again from where it was saved."):
        saved = packed.parse(payload, SavedClassifier)
    if saved.model != model.fingerprint:
        raise ModelError(
            f"{path} was adapted from another model (fingerprint {saved.model[:12]}, this one has "
            f"{model.fingerprint[:12]}). Load it with its own, or adapt this model to the examples again."
        )
    texts, labels = [text for text, _ in saved.examples], [label for _, label in saved.examples]
    prior = None if saved.class_prior is None else dict(saved.class_prior)
    settings: dict[str, Any] = {**saved.settings, "class_prior": prior}
    with raise_model_error(Path(path), "Adapt the model again."):
        classifier = FewShotClassifier(model, **settings)
        return classifier.restore(texts, labels, saved.counter_examples, dict(saved.descriptions), saved.own_steps)


def check_output_folders(
    bank: str | Path | None, *, out: str | Path, run: str | Path | None = None, replace: bool = True
) -> None:
    """Refuse folders that learning could not write to, before it begins; `bank` is the folder of the tasks, if any.

    Without `replace` a folder that holds a model is refused too.
    """
    check_output_folder(Path(out).absolute(), MODEL, replace=replace)
    paths = [Path(path) for path in (out, run) if path is not None]
    if run is not None:
        check_run_folder(Path(run))
        model, jobs = (path.resolve() for path in paths)
        if bank is not None and jobs == Path(bank).resolve():
            raise InputError(f"The run {run} is the folder of the tasks. Give the run a folder of its own.")
        if model.is_relative_to(jobs) or jobs.is_relative_to(model):
            raise InputError(f"The model {out} and the run {run} would lie in one another. Give each its own folder.")
    for path in paths:
        parent = next(parent for parent in path.absolute().parents if parent.is_symlink() or parent.exists())
        if not parent.exists():
            raise InputError(f"{parent} is a link to nothing. Fix it, or choose another folder for {path.name}.")
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise EnvironmentProblem(f"Nothing can be written to {parent}. Choose another folder for {path.name}.")
