"""`demo`: the starter model on a task of thirty examples, then learning and evaluation on a generated bank."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.evaluate import describe_evaluation
from manymetrics.cli.inputs import open_model, take_steps
from manymetrics.cli.output import Table, lines_of, say, write_text, write_tsv
from manymetrics.cli.predict import describe_answers
from manymetrics.cli.progress import Stages

TASK = Path(__file__).parent / "demo_task.tsv"  # thirty messages to a shop
NEW_TEXTS = (
    "my package still has not come",
    "somebody took the money from my card two times",
    "these boots pinch, I need them one size up",
    "is the rug suitable for underfloor heating",
    "xkcd blorp wug",
)


@options.command("manymetrics demo", "manymetrics demo --bank-only bank && manymetrics learn bank --out model")
@options.group(
    "Options",
    options.folder("--bank-only", help="Write the bank to this folder, and stop."),
    options.seed,
    options.workers,
    options.quiet,
)
def demo(*, bank_only: Path | None, seed: int | None, workers: int, quiet: bool) -> None:
    """Answer texts with the starter model; then learn from a generated bank, and evaluate on new tasks.

    The starter model is adapted to thirty messages to a shop; with torch, it takes gradient steps on them. The bank has
    48 small tasks; its model is evaluated on 8 tasks that are not used for learning. This takes some minutes. Only the
    sentence encoder is fetched, once; no data leave the machine.
    """
    seed = seed or 0
    if bank_only is not None:
        _write_bank(bank_only, seed)
        return
    _show_starter(open_model(options.STARTER))  # fetches the encoder, which learning needs too
    say("Learning from a generated bank of 48 tasks ...")
    past, new = mm.sample_bank(seed).split_off()
    with Stages(quiet=quiet) as stages:
        model = mm.learn_metrics(past, mm.Recipe(seed=seed), workers=workers, report=stages)
        evaluation = mm.evaluate(model, new, report=stages)
    agreement = f"clusters against planted families: adjusted Rand index {planted_agreement(model.clusters):.2f}"
    made_of = f"bank {model.origin.bank_fingerprint[:12]}, seed {seed}, manymetrics {mm.__version__}"
    write_text([*describe_evaluation(evaluation.as_dict()), agreement, made_of])
    stages.sum_up()


def planted_agreement(clusters: mm.Clusters) -> float:
    """The adjusted Rand index of clusters and planted families; a task without a family is a family by itself."""
    from sklearn.metrics import adjusted_rand_score  # slow to import

    families = [mm.collect.planted_family(name) or name for name in clusters.names]
    return float(adjusted_rand_score(families, clusters.labels))


def _write_bank(folder: Path, seed: int) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise mm.InputError(f"{folder} already exists and is not empty. Give a new folder.")
    bank = mm.sample_bank(seed)
    mm.write_bank(bank, folder)
    say(f"Wrote {len(bank)} tasks. Learn from them with: manymetrics learn {folder} --out model")
    write_tsv(str(folder))


def _show_starter(starter: mm.MetricModel) -> None:
    """Answer texts with the starter model, explain an answer and, with torch, take gradient steps."""
    examples = mm.read_examples(TASK)
    classifier = starter.adapt(examples.texts, examples.labels)
    answers = describe_answers(NEW_TEXTS, classifier.classes_.tolist(), classifier.answer(NEW_TEXTS))
    rows = [(row["text"], row["label"], f"{row['probability']:.2f}", f"{row['scope']:.2f}") for row in answers]
    table = Table("text", "label", numbers=["probability", "in scope"], rows=rows)
    title = f"The starter model, adapted to {len(examples)} examples of {len(classifier.classes_)} labels:"
    write_text([title, "", table, "", *lines_of(classifier.explain(NEW_TEXTS[0])), ""])
    if importlib.util.find_spec("torch") is not None:
        write_text([f"{take_steps(classifier, 'auto').own_steps_}", ""])
