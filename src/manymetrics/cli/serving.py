"""`serve`: a model for many clients over HTTP. `service`: its tenants, their keys, its models."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import manymetrics as mm
from manymetrics.cli.looking import fetch_encoder_if_missing
from manymetrics.cli.output import examples_of_use, json_option, make_table, on_one_line, say, write_json, write_table

if TYPE_CHECKING:
    from manymetrics.service.assembly import Service

FIRST_TENANT = "first"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # products of small matrices lose by more
SAMPLE_TASKS = 16
KEEP_ALIVE_SECONDS = 75  # longer than a proxy keeps its connections
database_option = click.option(
    "--database", metavar="URL", envvar="MANYMETRICS_DATABASE", default="sqlite:///service.db", show_default=True,
    help="SQLite or PostgreSQL, as a URL.",
)  # fmt: skip


@click.command(
    short_help="Serve a model to many clients over HTTP.",
    epilog=examples_of_use(
        "manymetrics serve model",
        "manymetrics serve model --database postgresql://user@host/name --port 8000",
    ),
)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--sample", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Serve a small model of made-up tasks, learned in a minute and kept in FOLDER.")  # fmt: skip
@click.option("--database", metavar="URL", envvar="MANYMETRICS_DATABASE",
              help="SQLite or PostgreSQL, as a URL.  [default: sqlite:///service.db]")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--insecure-cookies", is_flag=True, help="Let the pages be used over plain HTTP, as on this machine.")
def serve(*, model: Path | None, sample: Path | None, database: str | None, host: str, port: int,
          insecure_cookies: bool) -> None:  # fmt: skip
    """Serve the model of a folder.

    MODEL is put live in a database that has no live model yet; `manymetrics service model` exchanges it. Where there is
    no tenant, one is made, and its key is shown once. Settings beside these are read from environment variables.
    """
    require_extra()
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    from manymetrics.service.api import create_app
    from manymetrics.service.settings import Settings

    if sample is not None:
        model, database = _sample_model(sample), database or f"sqlite:///{sample / 'service.db'}"
    secure = False if insecure_cookies or host in ("127.0.0.1", "localhost", "::1") else None
    listening = _listen(host, port)
    app = create_app(Settings.from_environment(database=database, model=model, secure_cookies=secure))
    click.echo(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
    _first_key(app.state.service)
    _run(app, listening)


@click.group(short_help="Tenants, keys and models of the service.")
def service() -> None:
    """The tenants of the service, their keys, and its models."""


@service.group(short_help="Make, list and delete tenants.")
def tenants() -> None:
    """Clients of the service."""


@tenants.command("create")
@click.argument("name")
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER",
              help="A limit of its own: rate, burst, most_classifiers, most_examples. Repeatable.")  # fmt: skip
@database_option
def create_tenant(*, name: str, limits: tuple[str, ...], database: str) -> None:
    """Make a tenant called NAME."""
    found = _with_service(database, lambda it: it.tenants.create(name, limits=_limits(limits)))
    click.echo(found.id)


@tenants.command("list")
@database_option
@json_option
def list_tenants(*, database: str, as_json: bool) -> None:
    """All tenants, oldest first."""
    found = _with_service(database, lambda it: it.tenants.list())
    rows = [{"id": one.id, "name": one.name, "limits": one.limits, "created_at": str(one.created_at)} for one in found]
    _write_rows(rows, as_json=as_json)


@tenants.command("delete")
@click.argument("tenant")
@database_option
@click.confirmation_option(prompt="Delete the tenant with all its classifiers?")
def delete_tenant(*, tenant: str, database: str) -> None:
    """Delete a tenant, by name or id, with its keys, classifiers and examples."""
    _with_service(database, lambda it: it.tenants.delete(it.tenants.find(tenant).id))


@service.group(short_help="Make, list and revoke keys.")
def keys() -> None:
    """Keys of tenants."""


@keys.command("create")
@click.argument("tenant")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(["read", "write", "operate"]),
              help="What the key opens; repeatable.  [default: read, write]")  # fmt: skip
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="How long it opens anything.")
@click.option("--note", default="", help="What it is for.")
@database_option
def create_key(*, tenant: str, scopes: tuple[str, ...], days: float | None, note: str, database: str) -> None:
    """Make a key of a tenant, given by name or id, and show it, which happens once."""
    lifetime = None if days is None else timedelta(days=days)
    given = scopes or ("read", "write")

    def create(it: Service) -> str:
        return it.tenants.create_key(it.tenants.find(tenant).id, scopes=given, note=note, lifetime=lifetime)

    click.echo(_with_service(database, create))


@keys.command("list")
@click.argument("tenant")
@database_option
@json_option
def list_keys(*, tenant: str, database: str, as_json: bool) -> None:
    """The keys of a tenant, without their secrets."""
    found = _with_service(database, lambda it: it.tenants.keys(it.tenants.find(tenant).id))
    columns = ("id", "scopes", "note", "created_at", "expires_at", "revoked_at")
    rows = [{name: None if (value := getattr(one, name)) is None else str(value) for name in columns} for one in found]
    _write_rows(rows, as_json=as_json)


@keys.command("revoke")
@click.argument("key")
@database_option
def revoke_key(*, key: str, database: str) -> None:
    """Make a key open nothing, by the public part that `keys list` shows."""
    _with_service(database, lambda it: it.tenants.revoke(key))


@service.command("model")
@click.argument("model", type=click.Path(path_type=Path))
@database_option
def put_live(*, model: Path, database: str) -> None:
    """Put the model of a folder live.

    Running processes take it up within seconds, adapt the classifiers to it in the background, and compare.
    """
    click.echo(_with_service(database, lambda it: it.models.put_live(model)))


def _with_service(database: str, act: Callable[[Service], Any]) -> Any:
    """Do something with the service of a database; its problems become errors of the command line."""
    require_extra()
    from manymetrics.service.assembly import Service
    from manymetrics.service.problems import Problem
    from manymetrics.service.settings import Settings

    opened = Service(Settings.from_environment(database=database))
    try:
        return act(opened)
    except Problem as problem:
        raise mm.InputError(problem.detail) from problem
    finally:
        opened.stop()


def require_extra() -> None:
    """Refuse a command of the service where the extra is not installed."""
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as problem:
        raise mm.MissingExtra(
            f"The service needs {problem.name}, which is not installed. Install it with: pip install "
            '"manymetrics[service]"'
        ) from problem


def _sample_model(folder: Path) -> Path:
    """The folder of a model of made-up tasks; learned where it is not there."""
    place = folder / "model"
    if not place.exists():
        say("Learning a small model from made-up tasks; this takes about a minute, once.")
        past, _ = mm.sample_bank(tasks=SAMPLE_TASKS).split_off()
        recipe = mm.Recipe(clusters=5)
        fetch_encoder_if_missing(recipe.encoder)
        mm.learn_metrics(past, recipe, workers=os.cpu_count() or 1).save(place)
    return place


def _first_key(service: Service) -> None:
    """Show a key where nobody has one."""
    if service.tenants.list():
        say("There are tenants already; `manymetrics service keys create TENANT` makes another key.")
        return
    tenant = service.tenants.create(FIRST_TENANT)
    key = service.tenants.create_key(tenant.id, scopes=("read", "write", "operate"), note="made at the first start")
    click.echo(f"first key, shown this once: {key}")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as problem:
        raise mm.EnvironmentProblem(
            f"Nothing can be served at port {port} of {on_one_line(host)}: {problem.strerror}. Give another --port."
        ) from problem
    return listening


def _run(app: Any, listening: socket.socket) -> None:
    import uvicorn

    from manymetrics.service.logs import write_logs

    write_logs()
    config = uvicorn.Config(
        app, access_log=False, log_config=None, server_header=False, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=app.state.service.settings.stop_seconds, h11_max_incomplete_event_size=16384,
        proxy_headers=False,
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again when all is answered
        uvicorn.Server(config).run(sockets=[listening])


def _limits(given: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for one in given:
        name, _, number = one.partition("=")
        try:
            found[name] = float(number) if name in ("rate", "burst") else int(number)
        except ValueError:
            raise mm.InputError("A limit is written as NAME=NUMBER, such as rate=50.") from None
    return found


def _write_rows(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json or not rows:
        write_json(rows)
        return
    table = make_table(*rows[0])
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    write_table(table)
