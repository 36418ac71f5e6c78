"""`from-starter`: banks of a few tasks learned in addition to the starter model, beside the starter model alone.

The tasks of --data that the starter model was not learned from are divided by source: some are asked, with a few shots
each, the others make up banks, each larger one with the tasks of the smaller ones. No target is involved.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from experiments.intervals import accuracy, balanced_accuracy, gain_in_accuracy
from experiments.markdown import points, share
from experiments.methods import adapted
from experiments.options import FORMAT, data_option, finish, out_options
from experiments.problems import answer_problems, assign_to_folds, draw_problems
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table
from manymetrics.cli.progress import Stages
from manymetrics.errors import InputError
from manymetrics.learn import learn_metrics, past_tasks
from manymetrics.model import load_model
from manymetrics.recipe import Recipe

SIZES = (1, 3, 8, 20)
FOLDS = 5  # of the sources; the tasks of one are asked
SEED = 0


@click.command("from-starter", short_help="Small banks in addition to the starter model.")
@data_option
@out_options
def from_starter(*, data: Path, out: Path, workers: int, quiet: bool, as_json: bool) -> None:
    """Learn from 1, 3, 8 and 20 tasks of --data with --from starter, and answer problems of held-out tasks.

    Intervals are 95 % bootstrap intervals over sources and texts. All that is finished is kept in --out.
    """
    remember_run(out)
    starter, past = load_model("starter"), past_tasks(data)
    bank = past.only([name for name in past.names if name not in starter.clusters.names])
    asked = assign_to_folds(bank, FOLDS, seed=SEED)[0]
    own = [name for name in bank.names if name not in asked]
    if len(own) < max(SIZES):
        raise InputError(f"{data} has {len(own)} tasks that are not in the starter model; {max(SIZES)} are needed.")
    problems = draw_problems(bank, asked, seed=SEED, draws=1)
    sources = [task.source for task in problems]
    with Stages(quiet=quiet) as stages:
        alone = [answer_problems(adapted(starter), problems)]
        rows = [{"tasks": 0, "accuracy": vars(accuracy(alone, sources)), "balanced_accuracy": balanced_accuracy(alone)}]
        for size in SIZES:
            model = learn_metrics(
                bank.only(own[:size]), Recipe(seed=SEED), run=out / "run", workers=workers, report=stages, start=starter
            )
            answers = [answer_problems(adapted(model), problems)]
            rows.append({
                "tasks": size,
                "accuracy": vars(accuracy(answers, sources)),
                "balanced_accuracy": balanced_accuracy(answers),
                "gain": vars(gain_in_accuracy(answers, alone, sources)),
            })  # fmt: skip
    results = {
        "format": FORMAT,
        "command": f"python -m experiments from-starter --data {data.name} --out OUT",
        "data": past.fingerprint,
        "starter": starter.fingerprint,
        "problems": len(problems),
        "rows": rows,
    }
    finish(results, out / "from-starter.json", _show, quiet=quiet, as_json=as_json)


def _show(results: Mapping[str, Any]) -> None:
    table = Table("own tasks", numbers=["accuracy", "balanced accuracy", "over the starter"])
    for row in results["rows"]:
        balanced = f"{100 * row['balanced_accuracy']:.1f}"
        table.add_row(str(row["tasks"]), share(row["accuracy"]), balanced, points(row.get("gain")))
    table.write()
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, starter {results['starter'][:12]}, "
               f"{results['problems']} problems")  # fmt: skip
