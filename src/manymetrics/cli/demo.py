"""`demo`: the starter model on a task of thirty examples, then learning and evaluation on a generated bank."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.evaluate import describe_evaluation
from manymetrics.cli.inputs import open_model, take_steps
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, lines_of, say, write_result, write_tsv
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
    options.run,
    options.quiet,
    options.json_option,
)
def demo(
    *, bank_only: Path | None, seed: int | None, workers: int, run: Path | None, quiet: bool, as_json: bool
) -> None:
    """Answer texts with the starter model; then learn from a generated bank, and evaluate on new tasks.

    The starter model is adapted to thirty messages to a shop; with torch, it takes gradient steps on them. The bank has
    48 small tasks; its model is evaluated on 8 tasks that are not used for learning. This takes some minutes. Only the
    sentence encoder is fetched, once; no data leave the machine.
    """
    seed = seed or 0
    if bank_only is not None:
        _write_bank(bank_only, seed)
        return
    remember_run(run)
    examples = mm.read_examples(TASK)
    classifier = open_model(options.STARTER).adapt(examples.texts, examples.labels)
    names, labels = ("text", "label", "probability", "scope"), classifier.classes_.tolist()
    described = describe_answers(NEW_TEXTS, labels, classifier.answer(NEW_TEXTS))
    answers = [{name: answer[name] for name in names} for answer in described]
    starter = {"examples": len(examples.texts), "labels": len(labels), "answers": answers}
    if not as_json:
        write_result({}, _starter_text(starter, classifier), as_json=False)
        if importlib.util.find_spec("torch") is not None:
            click.echo(f"{take_steps(classifier, 'auto').own_steps_}\n")
        say("Learning from a generated bank of 48 tasks ...")
    with Stages(quiet=quiet) as stages:
        result = mm.evaluation.run_demo(seed=seed, workers=workers, run=run, report=stages)
    data = {
        "starter": starter,
        "seed": seed,
        "bank": result.model.origin.bank_fingerprint,
        "version": mm.__version__,
        "agreement": result.agreement,
        "clusters": [list(tasks) for tasks in result.model.clusters],
        **result.evaluation.as_dict(),
    }
    write_result(data, _text(data), as_json=as_json)
    stages.sum_up()


def _write_bank(folder: Path, seed: int) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise mm.InputError(f"{folder} already exists and is not empty. Give a new folder.")
    bank = mm.sample_bank(seed)
    mm.write_bank(bank, folder)
    say(f"Wrote {len(bank)} tasks. Learn from them with: manymetrics learn {folder} --out model")
    write_tsv(str(folder))


def _starter_text(starter: dict[str, Any], classifier: mm.FewShotClassifier) -> Iterator[str | Table]:
    yield f"The starter model, adapted to {starter['examples']} examples of {starter['labels']} labels:"
    yield ""
    rows = [
        (row["text"], row["label"], f"{row['probability']:.2f}", f"{row['scope']:.2f}") for row in starter["answers"]
    ]
    yield Table("text", "label", numbers=["probability", "in scope"], rows=rows)
    yield ""
    yield from lines_of(classifier.explain(NEW_TEXTS[0]))
    yield ""


def _text(data: dict[str, Any]) -> Iterator[str | Table]:
    yield from describe_evaluation(data)
    yield f"clusters against planted families: adjusted Rand index {data['agreement']:.2f}"
    yield f"bank {data['bank'][:12]}, seed {data['seed']}, manymetrics {data['version']}"
