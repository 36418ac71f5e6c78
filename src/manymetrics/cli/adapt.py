"""`adapt`: fit a model to the examples of a new task. `doctor`: find problems in the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.inputs import make_classifier
from manymetrics.cli.output import Table, lines_of, name_tasks, say, write_result

DEFAULT_THRESHOLD = 0.5  # the meaning of `reject=True`
SHARES = (0.01, 0.05, 0.1)  # of in-scope texts, for which `adapt` prints the threshold that rejects them
EQUAL = 1e-6  # largest difference between the shares of a uniform class prior


@options.command(
    "manymetrics adapt model --examples shots.tsv",
    "manymetrics adapt model --examples shots.tsv --reject-share 0.05 --save classifier",
)
@options.model
@options.new_task
@options.answers
@options.group(
    "Output",
    options.folder("--save", help="Save the classifier, with its example texts, in this folder."),
    options.flag("--replace", help="Replace the classifier in --save, if there is one."),
    options.json_option,
)
def adapt(*, model: str, save: Path | None, replace: bool, as_json: bool, **task: Any) -> None:
    """Adapt a model to the examples of a new task.

    Prints the metrics of MODEL that have weight for this task, and the accuracy from ten-fold cross-validation on the
    examples. To use a saved classifier, give MODEL and --classifier to `predict`, `explain`, `suggest` or `doctor`.
    """
    if save is not None:
        mm.FewShotClassifier.check_output_folder(save, replace=replace)
    classifier = make_classifier(model, task)
    if save is not None:
        classifier.save(save)
    summary = _summary(classifier)
    write_result(summary, _text(summary), as_json=as_json)
    if save is not None:
        say(f"The classifier is in {save}, with its example texts. Use it with: --classifier {save}")


@options.command("manymetrics doctor model --examples shots.tsv")
@options.model
@options.new_task
@options.group("Output", options.json_option)
def doctor(*, model: str, as_json: bool, **task: Any) -> None:
    """Find problems in the examples of a new task.

    Prints examples that contradict or repeat one another, labels that are confused, labels with too few examples, and
    the accuracy from ten-fold cross-validation on the examples.
    """
    diagnosis = make_classifier(model, task).doctor()
    unknown = {} if diagnosis.tried else dict.fromkeys(("accuracy", "low", "high"))
    data = {**asdict(diagnosis), **unknown, "chance": diagnosis.is_chance}
    write_result(data, lines_of(diagnosis), as_json=as_json)


def _summary(classifier: mm.FewShotClassifier) -> dict[str, Any]:
    model: mm.MetricModel = classifier.model
    metrics = {metric.name: metric for metric in classifier.classifier_.metrics}
    counts = Counter(str(label) for _, label in classifier.examples_)
    labels, diagnosis = tuple(sorted(map(str, classifier.classes_))), classifier.doctor()
    texts = [text for text, _ in classifier.examples_]
    return {
        "labels": {str(label): counts[str(label)] for label in classifier.classes_},
        "examples": counts.total(),
        "counter_examples": len(classifier.counter_examples_),
        "weights": [
            {"metric": name, "kind": metrics[name].kind, "weight": weight, "tasks": list(metrics[name].tasks)}
            for name, weight in sorted(classifier.weights_.items(), key=lambda pair: -pair[1])
        ],
        "class_prior": {str(label): share for label, share in classifier.class_prior_.items()},
        "same_labels": [task for shared in model.origin.by_labels if shared.labels == labels for task in shared.tasks],
        "label_names": classifier.uses_names_,
        "strange": mm.describe_unfamiliar(model.predictor.base, texts),
        "assignment": None if classifier.assignment_ is None else classifier.assignment_.as_dict(),
        "fallback": classifier.fallback_,
        "own_steps": classifier.own_steps_,
        "left_out_accuracy": diagnosis.accuracy if diagnosis.tried else None,  # None: no label has two examples
        "chance": diagnosis.is_chance,
        "reject": DEFAULT_THRESHOLD if classifier.reject is True else float(classifier.reject),
        "margin": float(classifier.margin),
        "thresholds": {f"{share:g}": _threshold(classifier, share) for share in SHARES},
    }


def _threshold(classifier: mm.FewShotClassifier, share: float) -> float | None:
    try:
        return classifier.scope_threshold(share)
    except mm.NotEnoughExamples:
        return None


def _text(summary: dict[str, Any]) -> Iterator[str | Table]:
    counts = ", ".join(f"{label} ({count})" for label, count in summary["labels"].items())
    others = f", and {summary['counter_examples']} counter-examples" if summary["counter_examples"] else ""
    yield f"{summary['examples']} examples of {len(summary['labels'])} labels{others}: {counts}"
    if (accuracy := summary["left_out_accuracy"]) is None:
        yield "Cross-validated accuracy: unknown, because no label has two different examples."
    else:
        remark = " This could be chance: add examples, or clearer ones." if summary["chance"] else ""
        yield f"Cross-validated accuracy: {accuracy:.0%}.{remark}"
    if count := len(summary["same_labels"]):
        yield f"{count} tasks of the bank have the same labels; a classifier learned from them contributes."
    shares = summary["class_prior"]
    if max(shares.values()) - min(shares.values()) >= EQUAL:
        written = ", ".join(f"{label} {share:.0%}" for label, share in shares.items())
        yield f"Class prior: {written}. Change it with --class-prior."
    yield f"Label names are {'' if summary['label_names'] else 'not '}used as examples."
    assigned = f"This task is {summary['assignment']['summary']}." if summary["assignment"] else None
    yield from filter(None, (summary["strange"], assigned, summary["own_steps"]))
    yield from _describe_rejection(summary)
    yield summary["fallback"] or "The metrics are combined with these weights:"
    yield ""
    rows = [
        (row["metric"], row["kind"], name_tasks(row["tasks"]), f"{row['weight']:.3f}")
        for row in summary["weights"]
        if row["weight"] > 0
    ]
    yield Table("metric", "kind", "learned from", numbers=["weight"], rows=rows)


def _describe_rejection(summary: dict[str, Any]) -> Iterator[str]:
    reject, margin, thresholds = summary["reject"], summary["margin"], summary["thresholds"].items()
    conditions = [f"its probability of being in scope is below {reject:.3f}"] if reject else []
    conditions += [f"its two most probable labels differ by less than {margin:g}"] if margin else []
    yield f"A text is rejected if {' or '.join(conditions)}." if conditions else "No text is rejected."
    known = [f"{float(share):.0%} with --reject {value:.3f}" for share, value in thresholds if value is not None]
    if known:
        yield f"Estimated share of in-scope texts that are rejected: {', '.join(known)}."
