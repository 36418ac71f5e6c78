"""`reproduce`, `held-out` and `page`: run the experiments, look at what came out, and keep it."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click

from experiments.comparison import RESULTS as COMPARISON
from experiments.comparison import compare
from experiments.data_commands import data
from experiments.families import families
from experiments.figures import page_figures
from experiments.grid import grid
from experiments.held_out import FOLDS, run_held_out
from experiments.held_out import RESULTS as HELD_OUT
from experiments.options import data_option, run_options
from experiments.page import keep_parts, write_page
from experiments.plan import EXPERIMENTS, OURS, PAPER, TODAY
from experiments.reproduction import RESULTS, reproduce
from experiments.several_rows import RESULTS as SEVERAL
from experiments.several_rows import several
from experiments.together import together
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import COMMAND_LINE, CommandGroup, remember_run
from manymetrics.cli.options import examples_of_use, json_option
from manymetrics.cli.output import Table, as_time, say, write_json
from manymetrics.cli.progress import Stages
from manymetrics.errors import InputError
from manymetrics.store import write_atomically

GROUPS = {OURS: "RobustTC-FSL", PAPER: "the paper's baselines", TODAY: "what else there is"}
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
KEPT = Path(__file__).parent / "kept"
KEPT_HELD_OUT, KEPT_SEVERAL, KEPT_COMPARED = "held-out-", "several-", "compare-"  # how the names of files begin
KEPT_REPEATED = "repeated-"
PAGE = Path(__file__).parents[1] / "docs" / "results.md"


class Experiments(CommandGroup):
    """The commands of the experiments, with errors shown as those of `manymetrics` are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was asked for, to be able to say how to go on after an interruption."""
        asked = shlex.join(["python", "-m", "experiments", *args])
        rest = super().parse_args(ctx, args)
        ctx.meta[COMMAND_LINE] = asked
        return rest


@click.group(
    cls=Experiments,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples_of_use(
        "python -m experiments reproduce amazon --data amazon --out amazon-results",
        "python -m experiments reproduce intent --data intent --quick --out quick    # minutes instead of hours",
        "python -m experiments page --amazon amazon-results --intent intent-results",
    ),
)
def main() -> None:
    """The paper's experiments again, against every baseline of its main table and today's."""


main.add_command(data)
main.add_command(compare)
main.add_command(families)
main.add_command(grid)
main.add_command(several)
main.add_command(together)


@main.command("reproduce", short_help="Run an experiment.")
@click.argument("experiment", type=click.Choice(EXPERIMENTS))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of tasks, its targets marked.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results and finished work.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds.  [default: 3, or 1 with --quick]")
@click.option(
    "--random-draws", type=click.IntRange(min=1), help="How often clusters are drawn at random.  [default: 20]"
)
@click.option("--quick", is_flag=True, help="One seed, smaller tasks, shorter training: the same table in minutes.")
@click.option("--table-only", is_flag=True, help="Neither the figure over the number of clusters nor the ablations.")
@click.option("--with", "extras", metavar="NAMES", default="", help="Also run peers: sentence, setfit, or both.")
@click.option(
    "--recipe",
    "recipe_name",
    help="Of networks over word vectors: a name, such as paper, or a TOML file.  [default: over wordllama vectors]",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes to work in.  [default: one for each core]")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@json_option
def run_experiment(*, experiment: str, data: Path, out: Path, seeds: int | None, random_draws: int | None, quick: bool,
                   table_only: bool, extras: str, recipe_name: str | None, workers: int | None, quiet: bool,
                   as_json: bool) -> None:  # fmt: skip
    """Run every method of the paper's main table and today's on the targets of the folder --data.

    The table shows means over targets and seeds with 95 % bootstrap intervals over sources and texts. All that is
    finished is kept in --out: the same command goes on where it was stopped.
    """
    remember_run(out)
    recipe = None if recipe_name is None else choose_recipe(recipe_name)
    wanted = tuple(name.strip() for name in extras.split(",") if name.strip())
    with Stages(quiet=quiet) as stages:
        results = reproduce(
            experiment, data, out, seeds=seeds, random_draws=random_draws, quick=quick, table_only=table_only,
            extras=wanted, recipe=recipe, workers=workers or os.cpu_count() or 1, report=stages,
        )  # fmt: skip
    if as_json:
        write_json(results)
    else:
        _show(results)
    stages.sum_up()
    if not quiet:
        say(f"Everything is in {out}.")


@main.command("held-out", short_help="Hold every source of a bank out once.")
@data_option
@click.option("--folds", type=click.IntRange(min=2), default=FOLDS, show_default=True, help="Parts to deal sources to.")
@run_options
def hold_out_sources(*, data: Path, out: Path, recipe: str, folds: int, workers: int | None, quiet: bool,
                     as_json: bool) -> None:  # fmt: skip
    """Learn from all sources but a fold's, answer few-shot problems of that fold, and so for every fold.

    Intervals are 95 % bootstrap intervals over sources and texts. All that is finished is kept in --out.
    """
    remember_run(out)
    with Stages(quiet=quiet) as stages:
        results = run_held_out(
            data, out, choose_recipe(recipe), called=recipe, folds=folds, workers=workers or os.cpu_count() or 1,
            report=stages,
        )  # fmt: skip
    write_json(results) if as_json else _show_held_out(results)


def _show_held_out(results: dict[str, Any]) -> None:
    table = Table("method", numbers=["accuracy", "balanced accuracy", "RobustTC-FSL ahead by"])
    for row in results["rows"]:
        ahead = "" if row["ahead"] is None else _points(row["ahead"])
        table.add_row(row["method"], *(_share(row[score]) for score in SCORES[:2]), ahead)
    table.write()
    click.echo(f"\n{results['command']}\n{results['tasks']} tasks of {results['sources']} sources in "
               f"{results['folds']} folds, data {results['data'][:12]}")  # fmt: skip


@main.command("page", short_help="Keep results, and write docs/results.md.")
@click.option("--amazon", type=click.Path(path_type=Path), help="Folder that `reproduce amazon` wrote.")
@click.option("--intent", type=click.Path(path_type=Path), help="Folder that `reproduce intent` wrote.")
@click.option("--held-out", type=click.Path(path_type=Path), multiple=True, help="Folder that `held-out` wrote.")
@click.option(
    "--several", "metrics", type=click.Path(path_type=Path), multiple=True, help="Folder that `several` wrote."
)
@click.option("--compared", type=click.Path(path_type=Path), multiple=True, help="Folder that `compare` wrote.")
@click.option("--repeated", type=click.Path(path_type=Path), multiple=True, help="File of `data repeated --json`.")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=PAGE, help="File to write.")
def write_results_page(*, amazon: Path | None, intent: Path | None, held_out: tuple[Path, ...],
                       metrics: tuple[Path, ...], compared: tuple[Path, ...], repeated: tuple[Path, ...],
                       out: Path) -> None:  # fmt: skip
    """Keep the results of experiments in experiments/kept, and write the page and the figures of all that are kept.

    Of an experiment that is not given, the results that are kept stay; beside a table alone, the figure and the
    ablations that are kept. Figures go to the folder images beside the page.
    """
    found: dict[Path, dict[str, Any]] = {}  # all is read before anything is kept
    for name, folder in zip(EXPERIMENTS, (amazon, intent), strict=True):
        if folder is not None:
            kept = KEPT / f"{name}.json"
            before = [_read(kept, "page")] if kept.is_file() else []
            table = _read(folder / RESULTS, f"reproduce {name}", "by_clusters")
            found[kept] = keep_parts(table, *before)
    kinds = ((KEPT_HELD_OUT, HELD_OUT, "held-out", held_out), (KEPT_COMPARED, COMPARISON, "compare", compared))
    for begin, name, command, folders in kinds:
        for folder in folders:
            one = _read(folder / name, command, "bank", "recipe_name")
            bank, recipe = Path(str(one["bank"])).name, Path(str(one["recipe_name"])).stem  # a recipe may be a file
            found[KEPT / f"{begin}{bank}-{recipe}.json"] = one
    for folder in metrics:
        for path in sorted(folder.glob(SEVERAL.format("*"))) or [folder / SEVERAL.format("*")]:
            found[KEPT / path.name] = _read(path, "several")
    for path in repeated:
        one = _read(path, "data repeated --json", "bank", "held_out")
        found[KEPT / f"{KEPT_REPEATED}{Path(str(one['bank'])).name}.json"] = one
    for path, one in found.items():
        write_atomically(path, json.dumps(one, indent=1, ensure_ascii=False).encode())
    results, *others = read_kept(KEPT)
    for name, one in results.items():
        for place, figure in page_figures(name, one).items():
            write_atomically(out.parent / place, figure)
    write_atomically(out, write_page(results, *others).encode())
    click.echo(str(out))


def read_kept(folder: Path) -> tuple[dict[str, Any], list[Any], list[Any], list[Any], list[Any]]:
    """What is kept: of each experiment by name, of held-out sources, of `several`, of `compare`, repeated texts."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    held, paid, compared, repeated = (
        [results for name, results in found.items() if name.startswith(begin)]
        for begin in (KEPT_HELD_OUT, KEPT_SEVERAL, KEPT_COMPARED, KEPT_REPEATED)
    )
    return {name: found[name] for name in EXPERIMENTS if name in found}, held, paid, compared, repeated


def _read(path: Path, command: str, *needed: str) -> dict[str, Any]:
    """The results that a command wrote, with the rows and whatever else they need to be shown."""
    if not path.is_file():
        raise InputError(f"There are no results in {path.parent}. Give the folder that `{command}` wrote.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{path} is damaged: {problem}. Give `{command}` again, which writes it anew.") from problem
    missing = [name for name in ("rows", *needed) if not isinstance(found, dict) or name not in found]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}. Give `{command}` again, which writes it anew.")
    return dict(found)


def _show(results: dict[str, Any]) -> None:
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
        scores = (_share(point[score]) for score in SCORES[:2])
        figure.add_row(point["method"], str(point["clusters"]), *scores)
    click.echo()
    figure.write()
    click.echo(
        f"\n{results['command']}\nseeds {', '.join(map(str, results['seeds']))}, data {results['data'][:12]}, "
        f"manymetrics {results['version']}, {as_time(results['seconds'])}"
    )
    skipped = [row for row in [*results["rows"], *results["ablations"]] if not row["applies"]]
    for row in skipped:
        click.echo(f"{row['method']}: {row['note']}")


def _cells(row: dict[str, Any]) -> list[str]:
    paper = "" if row["paper"] is None else f"{row['paper']:.1%}"
    if not row["applies"]:
        return [paper, "-", "-", "-", ""]
    gain = "" if row["gain"] is None else _points(row["gain"])
    return [paper, *(_share(row[score]) for score in SCORES), gain]


def _share(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.1%} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _points(gain: dict[str, float]) -> str:
    return f"{100 * gain['value']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"
