"""The service under load: throughput and latency, three times what it can do, one tenant's flood, memory.

    python -m benchmarks.load model                        # minutes; a folder that `manymetrics learn` has made
    python -m benchmarks.load model other-model --seconds 60 --texts 100000
    python -m benchmarks.load model --seconds 3 --texts 2000 --connections 16

The service runs in a process of its own on an SQLite database, its clients in this one, on the same machine: what the
clients take of the processors is missing to the service. Rows are printed as a table in Markdown. Latency counts from
the moment a request was to be sent, whether or not a connection was free. Compare the figures of one run with one
another, and with those of another run only where the machine was as quiet.

load_clients.py starts the service and asks it.
"""

import asyncio
import itertools
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchmarks.harness import Row, Target, seconds
from benchmarks.load_clients import TENANTS, WARM_UP, Client, Connection, Server, Taken, keep_asking, predictor, send_at
from benchmarks.page import table_with_notes

CALM_RATE = 20.0  # requests a second of the tenant who is not to notice the other's flood
TWICE = Target(2, "×", at_least=False)
FLAT = Target(10, "MiB more", at_least=False)
TIMES_CAPACITY = 3


async def measure(model: Path, *, length: float, texts: int, connections: int) -> list[Row]:
    """The rows of one model."""
    kind = model.name
    unlimited = {"rate": 1e9, "burst": 1e9}
    async with predictor(model, **unlimited) as (server, clients):
        before = server.spent()
        steady = await keep_asking(clients, connections, length)
        each = (server.spent() - before) / (WARM_UP + length)
        row = steady_row(kind, steady, length, connections, share=each)
        capacity = len(steady.accepted) / length
        over = await _overloaded(server, clients, TIMES_CAPACITY * capacity, length)
        memory = await _memory(server, clients, texts)
    async with predictor(model) as (server, clients):
        flood = await _flooded(server, clients, connections, length)
    return [row, *overload_rows(kind, steady, *over), memory_row(kind, memory), flood_row(kind, *flood)]


async def _overloaded(server: Server, clients: Sequence[Client], rate: float, length: float) -> tuple[Taken, Taken]:
    turns = itertools.cycle(clients)
    probe = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    found = await asyncio.gather(
        send_at(rate, length, lambda: next(turns).question(), server.port),
        send_at(10.0, length, lambda: probe, server.port),
    )
    return found[0], found[1]


async def _memory(server: Server, clients: Sequence[Client], texts: int, together: int = 50) -> list[tuple[int, float]]:
    """Ask for so many distinct texts; the memory after each tenth."""
    connection, seen, answered = Connection(server.port), [], 0
    for number, client in zip(range(texts // together), itertools.cycle(clients), strict=False):
        status, _, _ = await connection.ask(client.question(together))
        answered += together * (status == 200)
        if number % max(1, texts // together // 10) == 0:
            seen.append((answered, server.memory()))
    connection.close()
    return [*seen, (answered, server.memory())]


async def _flooded(server: Server, clients: Sequence[Client], connections: int,
                   length: float) -> tuple[Taken, Taken, Taken]:  # fmt: skip
    """A calm tenant alone, and the same beside a tenant who asks on many connections without a pause."""
    calm, flooding = clients[0], clients[1]
    alone = await send_at(CALM_RATE, length, calm.question, server.port)
    flood = asyncio.create_task(keep_asking([flooding], connections, length))
    await asyncio.sleep(WARM_UP)
    beside = await send_at(CALM_RATE, length, calm.question, server.port)
    return alone, beside, await flood


def steady_row(kind: str, taken: Taken, length: float, connections: int, *, share: float) -> Row:
    """Throughput and latency while every connection asks again as soon as it is answered."""
    each = share * length / max(1, len(taken.accepted))
    return Row(
        f"{kind}, {connections} connections for {length:g} s: requests of one text",
        f"{len(taken.accepted) / length:,.0f}/s, {_spread(taken.accepted)}",
        sound=taken.sound and not taken.refused,
        note=f"{TENANTS} tenants; answers by status {_counts(taken)}; the service had {share:.2f} processors, "
        f"{seconds(each)} of one for each request",
    )


def overload_rows(kind: str, steady: Taken, over: Taken, health: Taken) -> Iterator[Row]:
    """Latency of the accepted and of the refused under three times as many requests, and of /health beside them."""
    ratio = _at(0.99, over.accepted) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind}, three times as many: p99 of the accepted, over the p99 before",
        f"{ratio:.2f} × ({_spread(over.accepted)})", target=TWICE, value=ratio, sound=over.sound,
        note=f"answers by status {_counts(over)}; every refusal says when to come back",
    )  # fmt: skip
    slower = _at(0.99, over.refused) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind}, three times as many: p99 of the refused, over the same",
        f"{slower:.2f} × ({_spread(over.refused)})", target=Target(1, "×", at_least=False), value=slower,
    )  # fmt: skip
    yield Row(
        f"{kind}, three times as many: /health", _spread(health.accepted), sound=set(health.statuses) == {200},
        note=f"ten times a second; answers by status {_counts(health)}",
    )  # fmt: skip


def memory_row(kind: str, seen: Sequence[tuple[int, float]]) -> Row:
    """How much more memory the service holds after many distinct texts."""
    early = max(memory for _, memory in seen[: max(1, len(seen) // 4)])
    return Row(
        f"{kind}, memory of the service over {seen[-1][0]:,} distinct texts",
        f"{early:.0f} and {seen[-1][1]:.0f} MiB", target=FLAT, value=seen[-1][1] - early,
        note="the most within the first quarter, and at the end; requests of 50 texts; MiB on the way: "
        + ", ".join(f"{memory:.0f}" for _, memory in seen),
    )  # fmt: skip


def flood_row(kind: str, alone: Taken, beside: Taken, flood: Taken) -> Row:
    """How much longer a calm tenant waits beside one who floods."""
    ratio = _at(0.99, beside.accepted) / _at(0.99, alone.accepted)
    return Row(
        f"{kind}, p99 of a calm tenant beside one who floods, over its p99 alone",
        f"{ratio:.2f} × ({_spread(alone.accepted)}; {_spread(beside.accepted)})", target=TWICE, value=ratio,
        sound=beside.sound and not beside.refused,
        note=f"{CALM_RATE:g} requests a second; the flood's answers by status {_counts(flood)}",
    )  # fmt: skip


def load_table(rows: Sequence[Row]) -> str:
    """The rows in Markdown, notes below."""
    cells = [[row.what, row.ours, str(row.target or ""), row.verdict] for row in rows]
    return table_with_notes(["what", "ours", "target", "verdict"], cells, [row.note for row in rows])


def _at(share: float, times: Sequence[float]) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _spread(times: Sequence[float]) -> str:
    return f"p50 {seconds(_at(0.5, times))}, p99 {seconds(_at(0.99, times))}"


def _counts(taken: Taken) -> str:
    return ", ".join(f"{status or 'none'}: {count:,}" for status, count in sorted(taken.statuses.items()))


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seconds", "length", default=60.0, show_default=True)
@click.option("--texts", default=100_000, show_default=True, help="Distinct texts over which memory is watched.")
@click.option("--connections", default=64, show_default=True)
def main(*, models: tuple[Path, ...], length: float, texts: int, connections: int) -> None:
    """Put the service under load with each of the MODELS."""
    before, rows = os.getloadavg()[0], []
    for model in models:
        found = asyncio.run(measure(model, length=length, texts=texts, connections=connections))
        rows += found
        click.echo("\n".join(f"{row.what}: {row.ours} {row.verdict}" for row in found), err=True)
    click.echo(load_table(rows))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, which others share"
    click.echo(f"\n{time.strftime('%Y-%m-%d')}, {machine}; load of the machine before {before:.1f}.")


if __name__ == "__main__":
    main()
