"""A model's folder -> the service in a process of its own, watched from outside, and a client for each tenant."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.load_clients import Client, Connection, Texts
from manymetrics.service.domain.tenants import Tenants
from manymetrics.service.storage.database import open_database

TENANTS = 8


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
