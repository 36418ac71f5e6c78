"""Run every console and Python block of README.md and of the guides in fresh environments: `make bare`.

A console block that begins with `pip install ".[extra]"` runs in an environment with this extra alone, every other
block in the environment of `pip install .`. The blocks of a page run in their order and in one folder; it begins with
the files that a reader of the page has. The Python blocks of a page are one program, which runs last. To save time, the
bank of `demo --bank-only` is cut to eight tasks.
Only the standard library is used here, so that any interpreter can run it.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
README = PROJECT / "README.md"
GUIDES = ("getting-started", "own-bank", "scope-and-confidence", "what-to-label-next", "languages-and-encoders",
          "recipes", "moving")  # fmt: skip
PAGES = [README, *(PROJECT / "docs" / f"{name}.md" for name in GUIDES)]
COMMAND_SECONDS, READY_SECONDS, STOP_SECONDS = 900, 180, 60
PRINTED_PORT = 8000

NOT_RUN = {  # a pattern of commands -> why they are not run here
    "manymetrics encoders get intfloat": "needs the network beyond package registries",
}
MUST_PRINT = {  # a pattern of commands -> what their output must contain
    'manymetrics predict (model )?--examples shots.tsv "when': "track",
    "manymetrics predict --classifier classifier .*asdf": "rejected",
    "curl": '"parcels"',
    "manymetrics import": "train",
}
PYTHON_MUST_PRINT = {"README": "['track' 'refund']"}  # page -> what the output of its Python blocks must contain
GIVEN = {  # page -> the files that its reader has
    "own-bank": ["tickets.csv", "all-clients.jsonl", "banking77"],
    "scope-and-confidence": ["shots.tsv"],
    "what-to-label-next": ["shots.tsv"],
    "recipes": ["shots.tsv"],
    "moving": ["my-rasa-bot", "clu-project.json"],
}
KEPT_TASKS = {"banking-01", "banking-03", "banking-new", "health-02", "health-05", "smarthome-03", "smarthome-05",
              "smarthome-new"}  # fmt: skip
PHRASES = {
    "track": ["where is parcel", "has it been sent", "when will it arrive", "track order", "no news of delivery"],
    "refund": ["money back for", "please refund", "I want to return", "reimburse me for", "cancel and pay back"],
}
EXAMPLES = [(f"{text} {number}", label) for label in PHRASES for text in PHRASES[label] for number in range(4)]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, by the name of the page's file, and the heading it is under."""

    section: str
    language: str
    text: str
    page: str = "README"

    @property
    def commands(self) -> list[str]:
        """What follows each `$`, with the lines it goes on in; comments at the end are left out. Python has none."""
        found = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:] if self.language == "console" else []
        return [re.sub(r" +# .*$", "", command.rstrip()) for command in found]

    @property
    def extra(self) -> str:
        """The extra that the block begins by installing; empty for the package without extras."""
        named = re.match(r'\$ pip install "\.\[(\w+)\]"', self.text)
        return named[1] if named and self.language == "console" else ""


def blocks_of(text: str, page: str = "README") -> list[Block]:
    """The console and Python blocks of a page with this text, in its order."""
    section, found = "", []
    for part in re.finditer(r"^#+ (?P<heading>[^\n]+)|^```(?P<language>\w*)\n(?P<text>.*?)^```", text, re.M | re.S):
        section = part["heading"] or section
        if part["language"] in ("console", "python"):
            found.append(Block(section, part["language"], part["text"], page))
    return found


def blocks_of_pages() -> list[Block]:
    """The console and Python blocks of all pages."""
    return [block for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8"), page.stem)]


def reason_not_to_run(command: str) -> str | None:
    """Why a command is not run; None for one that is."""
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command)), None)


class Failed(Exception):
    """A command did not do what a page says."""


class Reader:
    """Does what the pages say, block by block, in a folder for all that is made."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.sources = place / "sources"
        write_sources(self.sources)
        (place / "home").mkdir()

    def folder_of(self, page: str) -> Path:
        """The folder in which the blocks of a page run, made with the files that its reader has."""
        folder = self.place / f"page-{page}"
        if not folder.exists():
            folder.mkdir()
            for name in GIVEN.get(page, []):
                copy = shutil.copytree if (self.sources / name).is_dir() else shutil.copy
                copy(self.sources / name, folder / name)
        return folder

    def follow(self, block: Block) -> None:
        """Run a block's commands, or its Python code, in the folder of its page."""
        folder, environment = self.folder_of(block.page), self.environment(block.extra)
        with contextlib.ExitStack() as background:
            if block.language == "python":
                (folder / "blocks.py").write_text(block.text, encoding="utf-8")
                must_print(PYTHON_MUST_PRINT.get(block.page, ""), run("python blocks.py", folder, environment))
            for command in block.commands:
                if reason_not_to_run(command) is None:
                    self.obey(command, folder, environment, background)

    def environment(self, extra: str) -> dict[str, str]:
        """The variables of a shell in which the environment with this extra is activated, made if it is not there."""
        place = self.place / f"env-{extra}"
        if not place.exists():
            venv.create(place, with_pip=True, symlinks=True)
        others = ("PYTHON", "RAY_", "VIRTUAL_ENV")
        found = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        settings = {
            "PIP_CONSTRAINT": str(PROJECT / "constraints.txt"),
            "PIP_NO_COMPILE": "0",  # pip reads it as the value of `compile`
            "RAY_TMPDIR": str(self.place),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        path = f"{place / 'bin'}{os.pathsep}{found['PATH']}"
        return found | settings | {"PATH": path, "HOME": str(self.place / "home"), "XDG_CACHE_HOME": cache}

    def obey(self, command: str, folder: Path, environment: dict[str, str], background: contextlib.ExitStack) -> None:
        """Run one command. What it exports, and the address and key of a service, are there for those after it."""
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value
        elif command.startswith("pip install"):
            run(command, PROJECT, environment)
            if ".[parquet]" in command:
                run(f"python -c {shlex.quote(WRITE_PARQUET)}", folder, environment)
        elif command.startswith("ray start"):
            background.enter_context(running(f"{command} --block", folder, environment, ready="Ray runtime started"))
        elif command.startswith("manymetrics serve"):
            environment["PORT"] = str(free_port())
            serve = f"{command} --port {environment['PORT']}"
            output = background.enter_context(running(serve, folder, environment, ready="first key"))
            environment["KEY"] = re.search(r"first key.*: (\S+)", output)[1]
        else:
            output = run(command.replace(f":{PRINTED_PORT}/", f":{environment.get('PORT')}/"), folder, environment)
            must_print(next((text for pattern, text in MUST_PRINT.items() if re.match(pattern, command)), ""), output)
            if command.startswith("manymetrics demo --bank-only"):
                keep_few_tasks(folder / "bank")


def must_print(expected: str, output: str) -> None:
    """Raise `Failed` where an output does not contain a text."""
    if expected not in output:
        raise Failed(f"{expected!r} is not in what it printed:\n{output}")


WRITE_PARQUET = (
    "import json, pyarrow, pyarrow.parquet as files;"
    "rows = list(map(json.loads, open('all-clients.jsonl')));"
    "files.write_table(pyarrow.Table.from_pylist(rows), 'reviews.parquet')"
)


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command printed; raises `Failed` with it where the exit code is not 0."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, timeout=COMMAND_SECONDS, check=False,
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"exit code {done.returncode}\n{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def running(command: str, folder: Path, environment: dict[str, str], *, ready: str) -> Iterator[str]:
    """A command that runs until it is stopped: what it printed until it was ready."""
    with open(folder / "background.txt", "w+b") as output:
        started = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            until = time.monotonic() + READY_SECONDS
            while ready not in (printed := (folder / "background.txt").read_text(encoding="utf-8")):
                if started.poll() is not None or time.monotonic() > until:
                    raise Failed(f"{ready!r} is not in what it printed:\n{printed}")
                time.sleep(0.2)
            yield printed
        finally:
            started.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(STOP_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def keep_few_tasks(bank: Path) -> None:
    """Remove all tasks from the generated bank but those of `KEPT_TASKS`."""
    manifest = json.loads((bank / "manifest.json").read_text(encoding="utf-8"))
    tasks = [task for task in manifest["tasks"] if task["name"] in KEPT_TASKS]
    for path in bank.glob("*.jsonl"):
        if path.name.split(".")[0] not in KEPT_TASKS:
            path.unlink()
    (bank / "manifest.json").write_text(json.dumps({**manifest, "tasks": tasks}), encoding="utf-8")


def write_sources(folder: Path) -> None:
    """The files that the pages use."""
    files = {
        "shots.tsv": "\n".join(f"{text}\t{label}" for text, label in EXAMPLES[::4]),
        "tickets.csv": "\n".join(["body,queue", *(f"{text},{label}" for text, label in EXAMPLES)]),
        "all-clients.jsonl": "\n".join(
            json.dumps({"text": text, "label": label, "client": client})
            for client in ("north", "south") for text, label in EXAMPLES
        ),
        "banking77/train.csv": "\n".join(["text,label", *(f"{text},{label}" for text, label in EXAMPLES)]),
        "my-rasa-bot/data/nlu.yml": 'version: "3.1"\nnlu:\n' + "".join(
            f"- intent: {label}\n  examples: |\n" + "".join(f"    - {text}\n" for text, of in EXAMPLES if of == label)
            for label in PHRASES
        ),
        "clu-project.json": json.dumps({
            "projectFileVersion": "2023-04-01",
            "metadata": {"projectKind": "Conversation", "projectName": "shop", "language": "en-us"},
            "assets": {
                "projectKind": "Conversation",
                "intents": [{"category": label} for label in PHRASES],
                "utterances": [{"text": text, "intent": label, "language": "en-us"} for text, label in EXAMPLES],
            },
        }),
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def in_order(blocks: list[Block]) -> list[Block]:
    """Page by page the console blocks, and then the Python blocks of the page as one program."""
    ordered = []
    for page in dict.fromkeys(block.page for block in blocks):
        of_page = [block for block in blocks if block.page == page]
        ordered += [block for block in of_page if block.language == "console"]
        if program := "\n".join(block.text for block in of_page if block.language == "python"):
            ordered.append(Block("Python", "python", program, page))
    return ordered


def main() -> int:
    """Run all blocks; the number of those that failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="readme-") as place:
        reader = Reader(Path(place))
        for block in in_order(blocks_of_pages()):
            print(f"{block.page}, {block.section!r}", flush=True)  # noqa: T201
            try:
                reader.follow(block)
            except (Failed, subprocess.TimeoutExpired) as problem:
                failed += 1
                print(f"FAILED in {block.page}, under {block.section!r}: {problem}", flush=True)  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(main())
