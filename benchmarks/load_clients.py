"""The service in a process of its own, watched from outside, and clients that ask it for texts that come once."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from manymetrics.service.domain.tenants import Tenants
from manymetrics.service.storage.database import open_database

TENANTS = 8
WARM_UP = 2.0  # seconds
REFUSED = (429, 503)
MOST_CONNECTIONS = 1_000
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


class Server:
    """The service in a process of its own."""

    def __init__(self, folder: Path, model: Path, **settings: object) -> None:
        self.database = f"sqlite:///{folder}/service.db"
        with contextlib.closing(open_database(self.database)) as database:
            tenants = Tenants(database)
            self.keys = [tenants.create_key(tenants.create(f"tenant {n}").id) for n in range(TENANTS)]
        command = [sys.executable, "-m", "manymetrics", "serve", str(model), "--database", self.database]
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
async def predictor(model: Path, **settings: object) -> AsyncIterator[tuple[Server, list[Client]]]:
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
