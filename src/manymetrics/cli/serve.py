"""`serve`: a model for many clients over HTTP."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.output import say
from manymetrics.cli.service import require_extra

if TYPE_CHECKING:
    from manymetrics.service.domain.service import Service

FIRST_TENANT = "first"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KEEP_ALIVE_SECONDS = 75  # longer than the idle time-out of common proxies


@options.command(
    "manymetrics serve model",
    "manymetrics serve model --database postgresql://user@host/name --port 8000",
)
@options.model
@options.group(
    "Options",
    options.database,
    options.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on."),
    options.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8000, show_default=True,
                   help="Port to listen on; 0 chooses a free one."),
    options.flag("--insecure-cookies", help="Allow other machines to sign in to the pages over plain HTTP."),
)  # fmt: skip
def serve(*, model: str, database: str, host: str, port: int, insecure_cookies: bool) -> None:
    """Serve a model to many clients over HTTP.

    If the database has no live model, MODEL becomes live, by default the starter model; `manymetrics service model`
    replaces it. If there is no tenant, one is created, and its key is printed once. Other settings are environment
    variables (docs/operation.md).
    """
    require_extra()
    for name in THREAD_VARIABLES:  # more threads slow down the products of small matrices
        os.environ.setdefault(name, "1")
    from manymetrics.service.http import create_app
    from manymetrics.service.settings import Settings

    secure = False if insecure_cookies else None
    listener = _listen(host, port)
    if model == options.STARTER:
        fetch_encoder_if_missing(mm.Recipe().encoder)
    say("Opening the database and loading the model ...")
    app = create_app(Settings.from_environment(database=database, model=Path(model), secure_cookies=secure))
    click.echo(f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}")
    _create_first_key(app.state.service)
    _run(app, listener)


def _create_first_key(service: Service) -> None:
    if service.tenants.list():
        say("To create another key: manymetrics service keys create TENANT")
        return
    tenant = service.tenants.create(FIRST_TENANT)
    key = service.tenants.create_key(tenant.id, scopes=("read", "write", "operate"), note="created at the first start")
    click.echo(f"first key, shown this once: {key}")


def _listen(host: str, port: int) -> socket.socket:
    """Listen at once: clients that connect before the start is complete wait for it."""
    is_ipv6 = ":" in host
    family, dual = (socket.AF_INET6, socket.has_dualstack_ipv6()) if is_ipv6 else (socket.AF_INET, False)
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=dual)
    except OSError as error:
        raise mm.EnvironmentProblem(f"Cannot listen: {error.strerror}. Choose another --port.") from error


def _run(app: Any, listener: socket.socket) -> None:
    import uvicorn

    from manymetrics.service.runtime.monitoring import write_logs

    write_logs()
    config = uvicorn.Config(
        app, access_log=False, log_config=None, server_header=False, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=app.state.service.settings.stop_seconds, h11_max_incomplete_event_size=16384,
        proxy_headers=False,
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again after the last response
        uvicorn.Server(config).run(sockets=[listener])
