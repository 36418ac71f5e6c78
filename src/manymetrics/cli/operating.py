"""`service backup`, `service restore`, `service move`: the rows and models of the service, kept and carried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manymetrics.cli.output import json_option, make_table, write_json, write_table
from manymetrics.cli.serving import database_option, require_extra

if TYPE_CHECKING:
    from manymetrics.service.copying import Contents


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--without-models", is_flag=True, help="Leave out the models that classifiers were adapted from.")
@database_option
@json_option
def backup(*, folder: Path, without_models: bool, database: str, as_json: bool) -> None:
    """Make a backup in a new FOLDER, while the service runs or not.

    It holds all rows as they are at one moment, and the models in use. It also holds the clients' texts: keep it where
    the database may be kept.
    """
    require_extra()
    from manymetrics.service.backups import back_up

    _tell(back_up(database, folder, models=not without_models), as_json=as_json)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--models", type=click.Path(path_type=Path), help="Where the models of the backup are to be kept.")
@database_option
@json_option
def restore(*, folder: Path, models: Path | None, database: str, as_json: bool) -> None:
    """Fill an empty database, SQLite or PostgreSQL, with the backup in FOLDER."""
    require_extra()
    from manymetrics.service.backups import restore as fill

    _tell(fill(folder, database, models=models), as_json=as_json)


@click.command()
@database_option
@click.option("--to", "target", metavar="URL", required=True, envvar="MANYMETRICS_TARGET",
              help="The empty database that everything is copied to.")  # fmt: skip
@json_option
def move(*, database: str, target: str, as_json: bool) -> None:
    """Copy everything to another database, such as from SQLite to PostgreSQL.

    Stop the service first: what is written to the old database afterwards is not carried over. Rows are counted and
    hashed on both sides before anything is committed. The old database stays as it is.
    """
    require_extra()
    from manymetrics.service.copying import move as copy_all

    _tell(copy_all(database, target), as_json=as_json)


def _tell(found: Contents, *, as_json: bool) -> None:
    if as_json:
        write_json({name: {"rows": one.rows, "sha256": one.sha256} for name, one in found.items()})
        return
    table = make_table("table", "rows", "sha256")
    for name, one in found.items():
        table.add_row(name, str(one.rows), one.sha256[:16])
    write_table(table)
