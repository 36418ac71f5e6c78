"""What somebody without a key, or another tenant, can do to the service or learn from it.

    python -m benchmarks.isolation model                   # minutes; a folder that `manymetrics learn` has made
    python -m benchmarks.isolation model --requests 200

Two rows: how long `/health` takes while four bodies of 4 MiB arrive without a key, again and again; and how well the
time of an answer tells texts that another tenant has stored or asked about from others. The second is the area under
the ROC curve: 0.5 says nothing, 1 says everything. The service runs in a process of its own, as for benchmarks.load.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.harness import Row, Target
from benchmarks.load import load_table
from benchmarks.load_clients import Client, Connection, Server, Texts, predictor

BODIES, BODY_BYTES = 4, 4 * 2**20
LONGEST_HEALTH, LARGEST_AUC = Target(0.5, "s", at_least=False), Target(0.55, "", at_least=False)
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def health_beside_bodies(server: Server, seconds: float) -> list[float]:
    """The seconds that `/health` takes, asked ten times a second while large bodies arrive without a key."""
    body = b"[" + b"[]," * ((BODY_BYTES - 4) // 3) + b"1]"
    head = (f"POST /v1/classifiers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")  # fmt: skip
    end, taken = time.perf_counter() + seconds, []

    async def flood() -> None:
        while time.perf_counter() < end:
            connection = Connection(server.port)
            status, _, _ = await connection.ask(head.encode() + body)
            if status != 401:
                raise RuntimeError(f"a body without a key was answered with {status}")
            connection.close()

    async def probe() -> None:
        connection = Connection(server.port)
        while (sent := time.perf_counter()) < end:
            await connection.ask(HEALTH)
            taken.append(time.perf_counter() - sent)
            await asyncio.sleep(0.1)
        connection.close()

    await asyncio.gather(probe(), *(flood() for _ in range(BODIES)))
    return taken


async def seen_and_unseen(clients: Sequence[Client], requests: int) -> tuple[list[float], list[bool]]:
    """How long a tenant waits for answers, half of them to texts that another one stored or asked about before."""
    first, second = clients[:2]
    texts, rng, connection = Texts(), random.Random(0), Connection(first.port)
    seen, unseen = texts.take(requests // 2), texts.take(requests // 2)
    for at in range(0, len(seen), 50):
        await connection.ask(first.request(first.path, {"texts": seen[at : at + 50]}))
    stored = [{"text": text, "label": "lamp"} for text in seen[::2]]
    await connection.ask(first.request(first.path.replace("predictions", "examples"), {"add": stored}))
    asked = [*((text, True) for text in seen), *((text, False) for text in unseen)]
    rng.shuffle(asked)
    taken = []
    for text, _ in asked:
        sent = time.perf_counter()
        await connection.ask(second.request(second.path, {"texts": [text]}))
        taken.append(time.perf_counter() - sent)
    connection.close()
    return taken, [was_seen for _, was_seen in asked]


async def measure(model: Path, *, requests: int, seconds: float) -> list[Row]:
    """Both rows."""
    async with predictor(model, rate=1e9, burst=1e9) as (server, clients):
        health = await health_beside_bodies(server, seconds)
        taken, was_seen = await seen_and_unseen(clients, requests)
    longest, auc = max(health), float(roc_auc_score(was_seen, -np.array(taken)))
    return [
        Row(f"/health beside {BODIES} bodies of 4 MiB without a key, longest of {len(health)}",
            f"{1000 * longest:.0f} ms", target=LONGEST_HEALTH, value=longest),
        Row(f"texts of another tenant told from others by the time of {requests:,} answers, AUC", f"{auc:.3f}",
            target=LARGEST_AUC, value=auc),
    ]  # fmt: skip


@click.command()
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--requests", default=2_000, show_default=True, help="Answers whose times are compared.")
@click.option("--seconds", default=20.0, show_default=True, help="For which bodies arrive without a key.")
def main(*, model: Path, requests: int, seconds: float) -> None:
    """Measure both on the service with MODEL."""
    click.echo(load_table(asyncio.run(measure(model, requests=requests, seconds=seconds))))


if __name__ == "__main__":
    main()
