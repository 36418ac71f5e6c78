"""`from-starter`: banks of a few tasks learned in addition to the starter model, beside the starter model alone.

The tasks of --data that the starter model was not learned from are divided by source: some are asked, with a few shots
each, the others make up banks, each larger one with the tasks of the smaller ones. No target is involved.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.intervals import gain_in_accuracy, scores
from experiments.markdown import percent, points, share
from experiments.methods import adapted
from experiments.options import Results, data_option, experiment
from experiments.problems import answer_problems, assign_to_folds, draw_problems
from manymetrics.cli.output import Table
from manymetrics.errors import InputError
from manymetrics.learn import learn_metrics, past_tasks
from manymetrics.model import load_model
from manymetrics.recipe import Recipe

SIZES = (1, 3, 8, 20)
FOLDS = 5  # of the sources; the tasks of one are asked
SEED = 0


def show(results: Results) -> Iterator[str | Table]:
    """A row for each number of tasks."""
    table = Table("own tasks", numbers=["accuracy", "balanced accuracy", "over the starter"])
    for row in results["rows"]:
        balanced = percent(row["balanced_accuracy"])
        table.add_row(row["tasks"], share(row["accuracy"]), balanced, points(row.get("gain")))
    yield table
    yield f"{results['problems']} problems, starter {results['starter'][:12]}"


@experiment("from-starter", data_option, file="from-starter.json", show=show,
            short_help="Small banks in addition to the starter model.")  # fmt: skip
def from_starter(*, data: Path, out: Path, **how: Any) -> Results:
    """Learn from 1, 3, 8 and 20 tasks of --data with --from starter, and answer problems of held-out tasks.

    Intervals are 95 % bootstrap intervals over sources and texts. All that is finished is kept in --out.
    """
    starter, past = load_model("starter"), past_tasks(data)
    bank = past.only([name for name in past.names if name not in starter.clusters.names])
    asked = assign_to_folds(bank, FOLDS, seed=SEED)[0]
    own = [name for name in bank.names if name not in asked]
    if len(own) < max(SIZES):
        raise InputError(f"{data} has {len(own)} tasks that are not in the starter model; {max(SIZES)} are needed.")
    problems = draw_problems(bank, asked, seed=SEED, draws=1)
    sources = [task.source for task in problems]
    alone = [answer_problems(adapted(starter), problems)]
    rows = [{"tasks": 0, **scores(alone, sources)}]
    for size in SIZES:
        model = learn_metrics(bank.only(own[:size]), Recipe(seed=SEED), run=out / "run", **how, start=starter)
        answers = [answer_problems(adapted(model), problems)]
        gain = vars(gain_in_accuracy(answers, alone, sources))
        rows.append({"tasks": size, **scores(answers, sources), "gain": gain})
    return {"data": past.fingerprint, "starter": starter.fingerprint, "problems": len(problems), "rows": rows}
