"""A learned model, and the folder it is saved in.

    model/serving.json             the settings of the mix, what each metric and each encoder is
    model/serving.safetensors      the tensors of encoders and heads; words that moved are kept as what differs
    model/origin.json              where it comes from: recipe, clusters, tasks kept from training
    model/origin.safetensors       S, X and E, and the centres of the tasks' texts
    model/README.md                a model card
    model/checksums.json           whose folder it is, its format, and SHA-256 of every file above

Serving reads the first two and nothing else. Nothing in a folder is executed on loading, no class or module is looked
up by a name from a file except among the registered kinds of encoders, and the network is not used.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from manymetrics.classifier import DEFAULT, FewShotClassifier, Serving
from manymetrics.classifier.loading import (
    MODEL,
    SERVING,
    TENSORS,
    holding_together,
    in_few_words,
    load_serving,
    open_serving_files,
)
from manymetrics.classifier.saving import read_classifier
from manymetrics.classifier.serving import pack_serving
from manymetrics.encode.encoder import centre
from manymetrics.errors import ManyMetricsError, ModelError, NotEnoughExamples
from manymetrics.model.card import model_card
from manymetrics.model.origin import MATRICES, ORIGIN, Origin, open_origin, pack_origin
from manymetrics.recipe import Recipe
from manymetrics.specialize.metric import Metric
from manymetrics.store import Kind, read_folder, require_place, seal_of, write_folder
from manymetrics.values import Clusters, Similarity, Texts, TransferMatrix
from manymetrics.values.notebook import html_table
from manymetrics.weigh.settings import MixSettings

LEARNED = Kind("record of learning", 8, "Give the `learn` command again.")
CARD = "README.md"


class MetricModel:
    """The meta-model: what serves, and where it comes from.

    serving   the metrics, the settings of their mix, and what was learned about when to trust an answer
    origin    the matrices, clusters and recipe; of a loaded model read when it is first asked for
    """

    def __init__(self, serving: Serving, origin: Origin | Callable[[], Origin], folder: Path | None = None) -> None:
        self.serving = serving
        self._origin = origin
        self._folder = folder  # that it was loaded from

    def __reduce__(self) -> tuple[Any, ...]:
        """A loaded model is pickled as the folder it came from, which must be there when it is unpickled."""
        if self._folder is not None:
            return _load_same, (str(self._folder), self.fingerprint)
        return MetricModel, (self.serving, self._origin)

    @property
    def origin(self) -> Origin:
        """Where the model comes from."""
        if not isinstance(self._origin, Origin):
            self._origin = self._origin()
        return self._origin

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is mixed."""
        return self.serving.metrics

    @property
    def settings(self) -> MixSettings:
        """How it is mixed."""
        return self.serving.settings

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
        """Tasks kept from the metrics' training."""
        return self.origin.held_out

    @property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        return self.serving.fingerprint

    def adapt(self, texts: Iterable[str], labels: Iterable[Any], counter_examples: Iterable[str] = (),
              descriptions: Mapping[Any, str] | None = None, *, mix: str = DEFAULT, adaptive: bool = True,
              reject: bool | float = False, margin: float = 0.0, rejected: Any = None, label_names: bool = True,
              class_prior: Mapping[Any, float] | None = None) -> FewShotClassifier:  # fmt: skip
        """A classifier for a new task from a few examples of it; the options are those of `FewShotClassifier`.

        `descriptions` say what labels mean, in place of their names; a label that is described needs no example.
        """
        options = {"mix": mix, "adaptive": adaptive, "reject": reject, "margin": margin, "rejected": rejected}
        classifier = FewShotClassifier(self, label_names=label_names, class_prior=class_prior, **options)
        return classifier.fit(texts, labels, counter_examples, descriptions)

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, which appears whole or not at all.

        A model that could not be loaded again is refused before anything is written.
        """
        files = {**_pack(self.serving), **pack_origin(self.origin)}
        if open_serving_files(Path(path), files).fingerprint != self.fingerprint:
            raise ModelError(
                "This model would not be the same after loading: an encoder's from_state does not give back what its "
                "state describes. Mend the encoder."
            )
        write_folder(Path(path), {**files, CARD: model_card(self.origin).encode()}, MODEL)

    def nearest_tasks(self, texts: Iterable[str], count: int = 5) -> list[tuple[str, float]]:
        """The tasks of the bank whose texts lie nearest to these, with the cosine between the two centres."""
        given, centres = Texts(texts), self.origin.centres
        if centres is None:
            raise ModelError("This model does not know where its tasks' texts lie. Learn it with word vectors.")
        if not len(given):
            raise NotEnoughExamples("Found no texts to be near to. Give at least one.")
        found = [centre(metric.encoder, given) for metric in self.metrics if metric.name == centres.metric]
        if not found or found[0].shape != centres.rows.shape[1:]:
            raise ModelError(f"The centres of the tasks' texts are of no metric {centres.metric!r} of this model.")
        cosines = centres.rows @ found[0]  # (tasks,)
        nearest = np.argsort(-cosines, kind="stable")[:count]
        return [(self.clusters.names[place], float(cosines[place])) for place in nearest]

    @staticmethod
    def require_place(path: str | Path) -> None:
        """Refuse a place that `save` would refuse, before an hour of learning rather than after it."""
        require_place(Path(path).absolute(), MODEL)

    def __deepcopy__(self, memo: dict[int, Any]) -> "MetricModel":
        """Itself: nothing in it changes, so copies of a classifier can share it."""
        return self

    def __repr__(self) -> str:
        return f"<MetricModel of {len(self.metrics)} metrics, {self.fingerprint[:12]}>"

    def _repr_html_(self) -> str:
        rows = [[one.name, one.kind, len(one.tasks), type(one.encoder).__name__] for one in self.metrics]
        return html_table(repr(self), ["metric", "kind", "learned from tasks", "encoder"], rows)


def load_model(path: str | Path) -> MetricModel:
    """Read a saved model; refuses one that is damaged, foreign, or of another format."""
    folder = Path(path).absolute()
    seal = seal_of(folder)
    return MetricModel(load_serving(Path(path)), partial(_load_own_origin, folder, seal), folder)


@cache
def _load_same(path: str, fingerprint: str) -> MetricModel:
    """The model of a folder, once in a process, as long as it is the one that was there."""
    model = load_model(path)
    if model.fingerprint != fingerprint:
        raise ModelError(
            f"{path} holds another model than the one that was pickled. Load that one, and adapt it again."
        )
    return model


def load_origin(path: str | Path) -> Origin:
    """Where a model comes from: of a model folder, or of the folder `learned` of a finished run."""
    folder = Path(path)
    kind = LEARNED if (folder / ORIGIN).is_file() and not (folder / SERVING).is_file() else MODEL
    files = read_folder(folder, [ORIGIN, MATRICES], kind)
    with holding_together(folder):
        return open_origin(files)


def _load_own_origin(folder: Path, seal: str | None) -> Origin:
    """The origin of a model that was loaded from a folder, as long as it is the one that was there."""
    if seal_of(folder) not in (seal, None):
        raise ModelError(f"{folder} holds another model by now. Load it again.")
    return load_origin(folder)


def require_origin_place(path: str | Path) -> None:
    """Refuse a place that `save_origin` would refuse, before an hour of learning rather than after it."""
    require_place(Path(path), LEARNED)


def save_origin(origin: Origin, path: str | Path) -> None:
    """Write where a model comes from to a folder `learned`, which appears whole or not at all."""
    write_folder(Path(path), pack_origin(origin), LEARNED)


def load_classifier(path: str | Path, model: MetricModel) -> FewShotClassifier:
    """Read a saved classifier, to be used with the model it was adapted from and with no other."""
    about = read_classifier(Path(path))
    if about["model"] != model.fingerprint:
        raise ModelError(
            f"{path} was adapted from another model (fingerprint {about['model'][:12]}, this one has "
            f"{model.fingerprint[:12]}). Load it with its own, or adapt this model to the examples again."
        )
    texts, labels = [text for text, _ in about["examples"]], [label for _, label in about["examples"]]
    with holding_together(Path(path), "Adapt the model again."):
        return FewShotClassifier(model, **about["settings"]).fit(
            texts, labels, about["counter_examples"], about["descriptions"]
        )


def _pack(serving: Serving) -> dict[str, bytes]:
    """What serves as the content of two files; encoders may be anybody's, so anything may go wrong in them."""
    try:
        tensors, about = pack_serving(serving)
        return {SERVING: json.dumps(about, indent=1, allow_nan=False).encode(), TENSORS: save(tensors)}
    except ManyMetricsError:
        raise
    except Exception as problem:
        raise ModelError(
            f"The model cannot be saved: {in_few_words(problem)}. "
            "Its encoders' states must be arrays and what JSON can hold."
        ) from problem
