"""`service`: tenants, keys, the live model, and backups of the service."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import Table, write_result

if TYPE_CHECKING:
    from manymetrics.service.domain.service import Service
    from manymetrics.service.storage.backup import Contents

tenant_argument = click.argument("tenant")
folder_argument = click.argument("folder", type=options.PATH)


def require_extra() -> None:
    """Refuse a command of the service if the extra is not installed."""
    for name in ("alembic", "fastapi", "sqlalchemy", "uvicorn"):
        if find_spec(name) is None:
            missing = f"The service needs {name}, which is not installed."
            raise mm.MissingExtra(f'{missing} Install it with: pip install "manymetrics[service]"')


def with_service(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option --database, and call the function with the service of that database."""

    @options.database
    @functools.wraps(function)
    def run(*, database: str, **arguments: Any) -> None:
        require_extra()
        from manymetrics.service.domain.errors import RequestError
        from manymetrics.service.domain.service import Service
        from manymetrics.service.settings import Settings

        service = Service(Settings.from_environment(database=database))
        try:
            function(service, **arguments)
        except RequestError as problem:
            raise mm.InputError(problem.detail) from problem
        finally:
            service.stop()

    return run


@click.group(cls=options.Group)
def service() -> None:
    """Manage tenants, keys, models and backups of the service."""


@service.group(cls=options.Group)
def tenants() -> None:
    """Create, list and delete tenants, the clients of the service."""


@tenants.command("create")
@click.argument("name")
@options.option("--limit", metavar="NAME=NUMBER", multiple=True, callback=options.read_pairs,
                help="A limit: rate, burst, most_classifiers or most_examples. Can be repeated.")  # fmt: skip
@with_service
def create_tenant(service: Service, *, name: str, limit: dict[str, float]) -> None:
    """Create a tenant, and print its id."""
    limits = {kind: number if kind in ("rate", "burst") else int(number) for kind, number in limit.items()}
    click.echo(service.tenants.create(name, limits=limits).id)


@tenants.command("list")
@options.json_option
@with_service
def list_tenants(service: Service, *, as_json: bool) -> None:
    """List tenants, the oldest first."""
    _write_rows(service.tenants.list(), ("id", "name", "limits", "created_at"), as_json=as_json)


@tenants.command("delete")
@tenant_argument
@click.confirmation_option(prompt="Delete the tenant with all its classifiers?")
@with_service
def delete_tenant(service: Service, *, tenant: str) -> None:
    """Delete a tenant and all its data.

    TENANT is a name or an id. Its keys, classifiers and examples are deleted.
    """
    service.tenants.delete(service.tenants.find(tenant).id)


@service.group(cls=options.Group)
def keys() -> None:
    """Create, list and revoke keys of tenants."""


@keys.command("create")
@tenant_argument
@options.option("--scope", multiple=True, type=click.Choice(["read", "write", "operate"]), default=["read", "write"],
                show_default=True, help="What the key permits. Can be repeated.")  # fmt: skip
@options.option("--days", metavar="N", type=click.FloatRange(0, min_open=True),
                help="Days until the key expires.  [default: never]")  # fmt: skip
@options.option("--note", default="", help="What the key is for.")
@with_service
def create_key(service: Service, *, tenant: str, scope: tuple[str, ...], days: float | None, note: str) -> None:
    """Create a key of a tenant and print it.

    TENANT is a name or an id. The key cannot be printed again.
    """
    lifetime = None if days is None else timedelta(days=days)
    tenant_id = service.tenants.find(tenant).id
    click.echo(service.tenants.create_key(tenant_id, scopes=scope, note=note, lifetime=lifetime))


@keys.command("list")
@tenant_argument
@options.json_option
@with_service
def list_keys(service: Service, *, tenant: str, as_json: bool) -> None:
    """List the keys of a tenant, without their secrets."""
    keys = service.tenants.keys(service.tenants.find(tenant).id)
    _write_rows(keys, ("id", "scopes", "note", "created_at", "expires_at", "revoked_at"), as_json=as_json)


@keys.command("revoke")
@click.argument("key")
@with_service
def revoke_key(service: Service, *, key: str) -> None:
    """Revoke a key. KEY is its id in `keys list`."""
    service.tenants.revoke(key)


@service.command("model")
@options.model
@with_service
def put_live(service: Service, *, model: str) -> None:
    """Make the model in the folder MODEL live, by default the starter model.

    Running processes load it within seconds, adapt all classifiers to it in the background, and compare the results.
    """
    click.echo(service.models.put_live(model))


@service.command("backup")
@folder_argument
@options.flag("--without-models", help="Do not include models.")
@options.database
@options.json_option
def back_up(*, folder: Path, without_models: bool, database: str, as_json: bool) -> None:
    """Back up the database and the models in use to a new FOLDER.

    The service may be running; the backup is consistent. It contains the texts of the clients: protect it like the
    database.
    """
    require_extra()
    from manymetrics.service.storage import backup

    _write_contents(backup.back_up(database, folder, models=not without_models), as_json=as_json)


@service.command()
@folder_argument
@options.folder("--models", help="Where to store the models of the backup.")
@options.database
@options.json_option
def restore(*, folder: Path, models: Path | None, database: str, as_json: bool) -> None:
    """Restore the backup in FOLDER to an empty database."""
    require_extra()
    from manymetrics.service.storage import backup

    _write_contents(backup.restore(folder, database, models=models), as_json=as_json)


def _write_contents(contents: Contents, *, as_json: bool) -> None:
    rows = [(name, table.rows, table.sha256[:16]) for name, table in contents.items()]
    write_result(contents, [Table("table", "rows", "sha256", rows=rows)], as_json=as_json)


def _write_rows(items: Iterable[object], names: tuple[str, ...], *, as_json: bool) -> None:
    """Print the attributes with these names, as JSON or as a table; without items `[]`."""
    rows = [[getattr(item, name) for name in names] for item in items]
    values = [[value if value is None or isinstance(value, dict) else str(value) for value in row] for row in rows]
    table = Table(*names, rows=[["" if value is None else value for value in row] for row in rows])
    write_result([dict(zip(names, row, strict=True)) for row in values], [table], as_json=as_json or not rows)
