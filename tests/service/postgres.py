"""A PostgreSQL of the tests' own: made in a temporary folder, on a free port, by a user that is not root."""

import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
TRIES = 10


def missing():
    """Why there can be no PostgreSQL here, or None."""
    if not (FOLDERS or shutil.which("initdb")):
        return "PostgreSQL is not installed"
    has_user = any(one.pw_name == "postgres" for one in pwd.getpwall())
    if os.geteuid() == 0 and not (has_user and shutil.which("runuser")):
        return "PostgreSQL refuses to run as root, and there is no user postgres"
    return None


class Postgres:
    """A server that can be stopped, killed and started again."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="manymetrics-postgres-"))
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.port = _free_port()
        self._made = 0
        self._call("initdb", "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "-N")
        self.start()

    def start(self):
        """Start it; after a stop at once, what is left of the last one may take a moment to be gone."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
        where = ("-D", str(self.folder / "data"), "-l", str(self.folder / "log"))
        for left in reversed(range(TRIES)):
            try:
                return self._call("pg_ctl", *where, "-o", options, "-t", "600", "-w", "start")
            except subprocess.CalledProcessError:
                if not left:
                    raise
                time.sleep(1)
        return None

    def stop(self, mode="fast"):
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-t", "600", "-w", "stop")

    def new_database(self):
        """The URL of an empty database."""
        self._made += 1
        name = f"service_{self._made}"
        self._call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def remove(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program, *arguments):
        command = [str(FOLDERS[-1] / program) if FOLDERS else program, *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _free_port():
    """A port that no outgoing connection is given, so that it is free again after a stop."""
    for port in random.sample(range(20_000, 32_000), 200):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")
