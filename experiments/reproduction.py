"""`reproduce`: a folder of tasks -> results.json, everything that was answered, and the model of the first seed.

OUT/results.json     every number, with the command, seeds, data fingerprint and versions that made it
OUT/answers/         what each row answered on each target, by seed
OUT/learned/         where the model of the first seed comes from, for the report
OUT/run/             all finished jobs: giving the same command again goes on where it was stopped
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from experiments import plan
from experiments.banks import cap_tasks, cap_tests
from experiments.bench import Bench
from experiments.experiment import Experiment
from experiments.markdown import percent, points, share
from experiments.options import data_option, out_options
from experiments.results import About, answer_files, compile_results
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, as_time, say, write_json
from manymetrics.cli.progress import Stages
from manymetrics.collect import load_tasks
from manymetrics.encode.sources.vectors import load_vectors
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Engine, Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import InputError, NotEnoughExamples
from manymetrics.evaluation.scoring import SCORES
from manymetrics.evaluation.targets import require_tests
from manymetrics.model import save_origin
from manymetrics.recipe import Recipe
from manymetrics.store import Run, write_atomically
from manymetrics.values import SharedData, TaskBank

RESULTS, ANSWERS, LEARNED, RUN, SPENT = "results.json", "answers", "learned", "run", "seconds.json"

GROUPS = {plan.OURS: "RobustTC-FSL", plan.PAPER: "the paper's baselines", plan.TODAY: "what else there is"}


@click.command("reproduce", short_help="Run an experiment.")
@click.argument("experiment", type=click.Choice(plan.EXPERIMENTS))
@data_option
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds.  [default: 3, or 1 with --quick]")
@click.option("--quick", is_flag=True, help="One seed, smaller tasks, shorter training: the same table in minutes.")
@click.option(
    "--recipe",
    help="Of networks over word vectors: a name, such as paper, or a TOML file.  [default: over wordllama vectors]",
)
@out_options
def reproduce_command(*, experiment: str, data: Path, out: Path, recipe: str | None, quiet: bool, as_json: bool,
                      **settings: Any) -> None:  # fmt: skip
    """Run every method of the paper's main table and today's on the targets of the folder --data.

    The table shows means over targets and seeds with 95 % bootstrap intervals over sources and texts. All that is
    finished is kept in --out: the same command goes on where it was stopped.
    """
    remember_run(out)
    chosen = None if recipe is None else choose_recipe(recipe)
    with Stages(quiet=quiet) as stages:
        results = reproduce(experiment, data, out, recipe=chosen, report=stages, **settings)
    write_json(results) if as_json else _show(results)
    stages.sum_up()
    if not quiet:
        say(f"Everything is in {out}.")


def _show(results: Mapping[str, Any]) -> None:
    table = Table("method", numbers=["paper", "accuracy", "balanced accuracy", "macro-F1", "RobustTC-FSL gains"])
    for group, title in GROUPS.items():
        table.add_row(f"- {title} -")
        for row in (row for row in results["rows"] if row["group"] == group):
            table.add_row(f"  {row['method']}", *_cells(row))
        table.add_row()
    table.add_row("- RobustTC-FSL otherwise, first seed -")
    for row in results["ablations"]:
        table.add_row(f"  {row['method']}", *_cells(row))
    table.write()
    figure = Table("clusters", numbers=["clusters", "accuracy", "balanced accuracy"])
    for point in results["by_clusters"]:
        scores = (share(point[score]) for score in SCORES[:2])
        figure.add_row(point["method"], str(point["clusters"]), *scores)
    click.echo()
    figure.write()
    click.echo(
        f"\n{results['command']}\nseeds {', '.join(map(str, results['seeds']))}, data {results['data'][:12]}, "
        f"manymetrics {results['version']}, {as_time(results['seconds'])}"
    )
    for row in (row for row in results["rows"] if not row["applies"]):
        click.echo(f"{row['method']}: {row['note']}")


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [percent(row["paper"]), *(share(row[score]) for score in SCORES), points(row["gain"])]


def reproduce(experiment: str, data: str | Path | TaskBank, out: str | Path, *, seeds: int | None = None,
              quick: bool = False, recipe: Recipe | None = None, vectors: WordVectors | None = None, workers: int = 1,
              report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Run the paper's experiment on Amazon reviews or on intents, and write everything to the folder `out`.

    `data` is the folder of tasks, its targets marked; `experiment` says which figures of the paper to show beside.
    `quick` runs one seed on smaller tasks with shorter training. Gives back what is in results.json.
    """
    folder = require_folder(out)
    bank = data if isinstance(data, TaskBank) else load_tasks(data)
    past, targets = bank.split_off()
    require_tests(targets)
    if len(past) < 2:
        raise NotEnoughExamples(f"Found {len(past)} tasks to learn from. Metrics are learned from at least two.")
    past = past.only(sorted(past.names))
    recipe = plan.networks(recipe)
    if vectors is not None:
        recipe = replace(recipe, vectors=vectors.name)
    if quick:
        past = cap_tasks(past, tasks=plan.QUICK_TASKS, train=plan.QUICK_TRAIN, valid=plan.QUICK_VALID)
        targets = cap_tests(targets, test=plan.QUICK_TEST)
        recipe = plan.quicken(recipe, tasks=len(past))
    size = plan.choose_size(seeds=seeds, quick=quick, tasks=len(past))
    words = [experiment, "--data", "BANK" if isinstance(data, TaskBank) else Path(data).name]
    words += [*(("--seeds", str(seeds)) if seeds else ()), *(("--quick",) if quick else ())]
    command = f"python -m experiments reproduce {' '.join(words)} --out OUT"
    about = About(experiment, command, bank, size, recipe)
    shared_data = SharedData(past.without_tests(), vectors or load_vectors(recipe.vectors))
    before, started = _spent(folder), time.monotonic()
    with threadpool_limits(1), Run.open(folder / RUN, recipe.as_toml()) as run:
        try:
            with Engine(shared_data, workers=workers, run=run, report=report) as run_jobs:
                code = code_fingerprint(Experiment.run)
                tried = Experiment(Bench(past, shared_data, targets, run_jobs, run, code, report), recipe)
                model = tried.run(size)
                results = compile_results(about, tried.outcome, model, targets)
        finally:
            seconds = before + time.monotonic() - started
            write_atomically(folder / SPENT, json.dumps(round(seconds, 1)).encode())
        results["seconds"] = round(seconds, 1)
        for name, content in answer_files(about, tried.outcome, targets).items():
            write_atomically(folder / ANSWERS / name, content)
        save_origin(model.origin, folder / LEARNED)
        write_atomically(folder / RESULTS, json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False).encode())
        run.finish()
    return results


def require_folder(out: str | Path) -> Path:
    """A folder that is new, empty, or holds an experiment; before an hour of work rather than after it."""
    folder = Path(out)
    ours = (folder / RUN).is_dir() or (folder / RESULTS).is_file()
    if folder.exists() and not ours and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already and holds no experiment. Give a new folder.")
    return folder


def _spent(folder: Path) -> float:
    """The seconds that earlier calls spent on the same experiment."""
    try:
        return float(json.loads((folder / SPENT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return 0.0
