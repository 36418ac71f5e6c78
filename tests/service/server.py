"""The service as a process of its own, to be signalled, killed and started again."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path

import uvicorn

UNBOUNDED = {"MANYMETRICS_RATE": "1000000", "MANYMETRICS_BURST": "1000000", "MANYMETRICS_MOST_CLASSIFIERS": "1000000"}
LONGEST_START = 120.0  # seconds, on a machine that is busy with other things


@contextlib.contextmanager
def listening(app):
    """The URL of an app that listens on a free port, in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as bound:  # who connects before the start is complete waits for it
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Server:
    """`manymetrics serve` on a free port; what it logs is in a file."""

    def __init__(self, folder, *, database, model=None, **environment):
        self.log = Path(folder) / "service.log"
        words = ["serve", *([str(model)] if model else []), "--database", database, "--port"]
        self._command = [sys.executable, "-m", "manymetrics", *words]
        self._environment = {**os.environ, **environment}
        self.process, self.port = None, 0

    def start(self):
        """Start it, on the port of an earlier start if there was one, and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, str(self.port)], env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        first = self.process.stdout.readline()
        if not first.startswith("http://"):
            raise AssertionError(f"The service did not start: {self.log.read_text(encoding='utf-8')[-2000:]}")
        self.port = int(first.strip().rpartition(":")[2])
        status, _, body = self.ask("GET", "/ready", seconds=LONGEST_START)  # waits until the service is ready
        if status != 200:
            raise AssertionError(f"The service is not ready: {body} {self.log.read_text(encoding='utf-8')[-2000:]}")
        return self

    def ask(self, method, path, body=None, headers=None, seconds=30.0):
        """One request on a connection of its own: the status, the headers and the body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read()
        finally:
            connection.close()

    def kill(self):
        """End it without warning."""
        self.process.kill()
        self.process.wait()

    def end(self, seconds=60.0):
        """Ask it to end, and give the status it ends with."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)
