"""The service under load: throughput and latency, three times what it can do, one tenant's flood, memory.

    python -m benchmarks.load model                        # minutes; a folder that `manymetrics learn` has made
    python -m benchmarks.load model sentence-model --seconds 60 --texts 100000
    python -m benchmarks.load model --seconds 3 --texts 2000 --connections 16

The service runs in a process of its own on an SQLite database, its clients in this one, on the same machine: what the
clients take of the processors is missing to the service. Rows are printed as a table in Markdown. Latency counts from
the moment a request was to be sent, whether or not a connection was free. Compare the figures of one run with one
another, and with those of another run only where the machine was as quiet.
"""

import asyncio
import contextlib
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import manymetrics as mm
from benchmarks.harness import Row, Target, seconds
from manymetrics.service.database import open_database
from manymetrics.service.tenants import Tenants

TENANTS = 8
WARM_UP = 2.0  # seconds
REFUSED = (429, 503)
TIMES_CAPACITY = 3
MOST_CONNECTIONS = 1_000
CALM_RATE = 20.0  # requests a second of the tenant who is not to notice the other's flood
TWICE = Target(2, "×", at_least=False)
FLAT = Target(10, "MiB more", at_least=False)
PHRASES = (
    "turn on the lamp play some jazz what is the weather in town today please book a table for two people "
    "cancel my order where is my parcel set an alarm for seven call my mother add milk to the list"
)
EXAMPLES = {
    "lamp": ("turn on the lamp", "switch the light on please", "lamp off now"),
    "music": ("play some jazz", "put on a song", "louder music please"),
    "weather": ("will it rain today", "how warm is it in town", "is it windy"),
    "order": ("where is my parcel", "cancel my order", "when will it arrive"),
}


class Texts:
    """Texts of known words, none of which comes twice: the last words of each spell its number."""

    def __init__(self) -> None:
        self._rng, self._number, self._words = random.Random(0), itertools.count(), sorted(set(PHRASES.split()))

    def take(self, count: int) -> list[str]:
        """So many more."""
        return [f"{' '.join(self._rng.choices(self._words, k=4))} {self._spelled(next(self._number))}"
                for _ in range(count)]  # fmt: skip

    def _spelled(self, number: int) -> str:
        signs = []
        for _ in range(4):
            number, rest = divmod(number, len(self._words))
            signs.append(self._words[rest])
        return " ".join(signs)


@dataclass
class Taken:
    """What came of some requests."""

    accepted: list[float] = field(default_factory=list)  # seconds
    refused: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    without_advice: int = 0  # refused without Retry-After

    def note(self, status: int, head: bytes, spent: float) -> None:
        """One answer."""
        self.statuses[status] += 1
        (self.refused if status in REFUSED else self.accepted).append(spent)
        self.without_advice += status in REFUSED and b"retry-after" not in head

    @property
    def sound(self) -> bool:
        """Whether every request was either answered or refused with advice when to come back."""
        return set(self.statuses) <= {200, *REFUSED} and not self.without_advice


class Connection:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Send a request: status, head and body of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        body = await reader.readexactly(int(length or 0))
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), head, body

    def close(self) -> None:
        """Give the connection up."""
        if self._streams:
            self._streams[1].close()
            self._streams = None


class Client:
    """One tenant's client: makes requests to its classifier."""

    def __init__(self, port: int, key: str, texts: Texts) -> None:
        self.port, self.key, self.texts, self.path = port, key, texts, ""

    async def make_classifier(self) -> None:
        """Make the classifier that is asked from here on."""
        examples = [{"text": text, "label": label} for label, texts in EXAMPLES.items() for text in texts]
        body = {"name": "load", "examples": examples}
        connection = Connection(self.port)
        status, _, answer = await connection.ask(self.request("/v1/classifiers", body))
        connection.close()
        if status != 201:
            raise RuntimeError(f"no classifier was made: {status}")
        self.path = f"/v1/classifiers/{json.loads(answer)['id']}/predictions"

    def request(self, path: str, body: object) -> bytes:
        """A request as it is sent."""
        content = json.dumps(body).encode()
        head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n")  # fmt: skip
        return head.encode() + content

    def question(self, count: int = 1) -> bytes:
        """A request for predictions of texts that nobody has asked for before."""
        return self.request(self.path, {"texts": self.texts.take(count)})


class Server:
    """The service in a process of its own."""

    def __init__(self, folder: Path, model: Path, **settings: object) -> None:
        self.database = f"sqlite:///{folder}/service.db"
        with contextlib.closing(open_database(self.database)) as database:
            tenants = Tenants(database)
            self.keys = [tenants.create_key(tenants.create(f"tenant {n}").id) for n in range(TENANTS)]
        command = [sys.executable, "-m", "manymetrics.cli", "serve", str(model), "--database", self.database]
        environment = {**os.environ, **{f"MANYMETRICS_{name.upper()}": str(one) for name, one in settings.items()}}
        self._log = (folder / "service.log").open("wb")
        self.process = subprocess.Popen(  # noqa: S603
            [*command, "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.port = int(str(self.process.stdout and self.process.stdout.readline()).strip().rpartition(":")[2])

    async def wait(self) -> None:
        """Wait until it answers."""
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                if (await Connection(self.port).ask(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"))[0] == 200:
                    return
            await asyncio.sleep(0.05)
        raise RuntimeError("the service has ended before it was ready")

    def memory(self) -> float:
        """What the process holds, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    def spent(self) -> float:
        """Processor seconds of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()
        self._log.close()


@contextlib.asynccontextmanager
async def serving(model: Path, **settings: object) -> AsyncIterator[tuple[Server, list[Client]]]:
    """The service on a database of its own, and a client for each tenant."""
    with TemporaryDirectory() as folder:
        server = Server(Path(folder), model, **settings)
        try:
            await server.wait()
            texts = Texts()
            clients = [Client(server.port, key, texts) for key in server.keys]
            for client in clients:
                await client.make_classifier()
            yield server, clients
        finally:
            server.close()


async def keep_asking(clients: Sequence[Client], connections: int, length: float) -> Taken:
    """Every connection asks again as soon as it is answered; what a warm-up gives is not counted."""
    taken, started = Taken(), time.perf_counter()
    begin, end = started + WARM_UP, started + WARM_UP + length

    async def ask(client: Client) -> None:
        connection = Connection(client.port)
        while (sent := time.perf_counter()) < end:
            status, head, _ = await connection.ask(client.question())
            if begin <= (now := time.perf_counter()) <= end:
                taken.note(status, head, now - sent)
        connection.close()

    await asyncio.gather(*(ask(client) for client in itertools.islice(itertools.cycle(clients), connections)))
    return taken


async def send_at(rate: float, length: float, make: Callable[[], bytes], port: int) -> Taken:
    """Send so many requests a second, whether or not those before are answered."""
    taken, free, asked = Taken(), [Connection(port) for _ in range(MOST_CONNECTIONS)], set()
    started = time.perf_counter()

    async def ask(due: float) -> None:
        connection = free.pop()
        try:
            status, head, _ = await connection.ask(make())
            taken.note(status, head, time.perf_counter() - due)
            free.append(connection)
        except (OSError, asyncio.IncompleteReadError):
            taken.statuses[0] += 1
            free.append(Connection(port))

    for number in range(int(rate * length)):
        due = started + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        elif number % 20 == 0:
            await asyncio.sleep(0)
        if free:
            task = asyncio.create_task(ask(due))
            asked.add(task)
            task.add_done_callback(asked.discard)
        else:
            taken.statuses[-1] += 1  # no connection is left: the client itself gives up
    await asyncio.gather(*asked)
    for connection in free:
        connection.close()
    return taken


async def measure(model: Path, *, length: float, texts: int, connections: int) -> list[Row]:
    """The rows of one model."""
    kind = (
        "sentence"
        if any(isinstance(one.encoder, mm.SentenceEncoder) for one in mm.load_model(model).metrics)
        else ("static")
    )
    unlimited = {"rate": 1e9, "burst": 1e9}
    async with serving(model, **unlimited) as (server, clients):
        before = server.spent()
        steady = await keep_asking(clients, connections, length)
        each = (server.spent() - before) / (WARM_UP + length)
        row = _steady(kind, steady, length, connections, share=each)
        capacity = len(steady.accepted) / length
        over = await _overloaded(server, clients, TIMES_CAPACITY * capacity, length)
        memory = await _memory(server, clients, texts)
    async with serving(model) as (server, clients):
        flood = await _flooded(server, clients, connections, length)
    return [row, *_over(kind, steady, *over), _flat(kind, memory), _beside(kind, *flood)]


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


async def _flooded(
    server: Server, clients: Sequence[Client], connections: int, length: float
) -> tuple[Taken, Taken, Taken]:
    """A calm tenant alone, and the same beside a tenant who asks on many connections without a pause."""
    calm, flooding = clients[0], clients[1]
    alone = await send_at(CALM_RATE, length, calm.question, server.port)
    flood = asyncio.create_task(keep_asking([flooding], connections, length))
    await asyncio.sleep(WARM_UP)
    beside = await send_at(CALM_RATE, length, calm.question, server.port)
    return alone, beside, await flood


def _at(share: float, times: Sequence[float]) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _spread(times: Sequence[float]) -> str:
    return f"p50 {seconds(_at(0.5, times))}, p99 {seconds(_at(0.99, times))}"


def _steady(kind: str, taken: Taken, length: float, connections: int, *, share: float) -> Row:
    each = share * length / max(1, len(taken.accepted))
    return Row(
        f"{kind} model, {connections} connections for {length:g} s: requests of one text",
        f"{len(taken.accepted) / length:,.0f}/s, {_spread(taken.accepted)}",
        sound=taken.sound and not taken.refused,
        note=f"{TENANTS} tenants; answers by status {_counts(taken)}; the service had {share:.2f} processors, "
        f"{seconds(each)} of one for each request",
    )


def _over(kind: str, steady: Taken, over: Taken, health: Taken) -> Iterator[Row]:
    ratio = _at(0.99, over.accepted) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind} model, three times as many: p99 of the accepted, over the p99 before",
        f"{ratio:.2f} × ({_spread(over.accepted)})", target=TWICE, value=ratio, sound=over.sound,
        note=f"answers by status {_counts(over)}; every refusal says when to come back",
    )  # fmt: skip
    slower = _at(0.99, over.refused) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind} model, three times as many: p99 of the refused, over the same",
        f"{slower:.2f} × ({_spread(over.refused)})", target=Target(1, "×", at_least=False), value=slower,
    )  # fmt: skip
    yield Row(
        f"{kind} model, three times as many: /health", _spread(health.accepted), sound=set(health.statuses) == {200},
        note=f"ten times a second; answers by status {_counts(health)}",
    )  # fmt: skip


def _flat(kind: str, seen: Sequence[tuple[int, float]]) -> Row:
    early = max(memory for _, memory in seen[: max(1, len(seen) // 4)])
    return Row(
        f"{kind} model, memory of the service over {seen[-1][0]:,} distinct texts",
        f"{early:.0f} and {seen[-1][1]:.0f} MiB", target=FLAT, value=seen[-1][1] - early,
        note="the most within the first quarter, and at the end; requests of 50 texts; MiB on the way: "
        + ", ".join(f"{memory:.0f}" for _, memory in seen),
    )  # fmt: skip


def _beside(kind: str, alone: Taken, beside: Taken, flood: Taken) -> Row:
    ratio = _at(0.99, beside.accepted) / _at(0.99, alone.accepted)
    return Row(
        f"{kind} model, p99 of a calm tenant beside one who floods, over its p99 alone",
        f"{ratio:.2f} × ({_spread(alone.accepted)}; {_spread(beside.accepted)})", target=TWICE, value=ratio,
        sound=beside.sound and not beside.refused,
        note=f"{CALM_RATE:g} requests a second; the flood's answers by status {_counts(flood)}",
    )  # fmt: skip


def _counts(taken: Taken) -> str:
    return ", ".join(f"{status or 'none'}: {count:,}" for status, count in sorted(taken.statuses.items()))


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown, notes below."""
    lines = ["| what | ours | target | verdict |", "| --- | --- | --- | --- |"]
    notes: list[str] = []
    for row in rows:
        notes += [row.note] if row.note else []
        mark = f" [{len(notes)}]" if row.note else ""
        lines.append(f"| {row.what}{mark} | {row.ours} | {row.target or ''} | {row.verdict} |")
    return "\n".join([*lines, "", *(f"[{number}] {note}.  " for number, note in enumerate(notes, start=1))])


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
    click.echo(table(rows))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, which others share"
    click.echo(f"\n{time.strftime('%Y-%m-%d')}, {machine}; load of the machine before {before:.1f}.")


if __name__ == "__main__":
    main()
