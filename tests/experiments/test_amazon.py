"""The paper's data, fetched from a server on this machine and checked; nothing here leaves it."""

import errno
import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from experiments.amazon import check_amazon, get_amazon

from experiments import amazon
from manymetrics.errors import EnvironmentProblem, InputError

DATA = Path(os.environ.get("MANYMETRICS_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "amazon"
REVIEWS = b"a fine lamp\t1\nit broke at once\t-1\n"
FILES = {
    "baby.t2.train": REVIEWS,
    "baby.t2.test": REVIEWS * 2,
    "workspace.filtered.list": b"baby\nmusic\n",
    "workspace.target.list": b"books\n",
    **dict.fromkeys(amazon.WITHOUT_CHECKSUM, REVIEWS * 3),
}


class Server(ThreadingHTTPServer):
    """Serves `files`, and misbehaves as `moods` says: name -> a list of answers, one for each asking."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.moods, self.asked = dict(FILES), {}, []
        self.address = f"http://127.0.0.1:{self.server_port}/data"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/data/")
        self.server.asked.append(name)
        mood = self.server.moods[name].pop(0) if self.server.moods.get(name) else "well"
        payload = self.server.files.get(name)
        if mood == "busy" or payload is None:
            self.send_error(503 if mood == "busy" else 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload[: len(payload) // 2] if mood == "cut short" else payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    known = {name: hashlib.sha256(FILES[name]).hexdigest() for name in FILES if name not in amazon.WITHOUT_CHECKSUM}
    monkeypatch.setattr(amazon, "known_checksums", lambda: known)
    monkeypatch.setattr(amazon, "WAITS", (0.0, 0.0))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(*words):
    from experiments.commands import main

    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words])


def test_what_is_there_and_whole_is_not_fetched_again(server, tmp_path):
    get_amazon(tmp_path, source=server.address)
    (tmp_path / "baby.t2.test").unlink()
    (tmp_path / "baby.t2.train").write_bytes(REVIEWS[:-3])
    (tmp_path / "music.t4.train").write_bytes(b"<html>blocked</html>")
    server.asked.clear()
    reports = []
    get_amazon(tmp_path, source=server.address, report=lambda *so: reports.append(so))
    assert server.asked == ["baby.t2.test", "baby.t2.train", "music.t4.train"]
    assert reports[0] == (7, 7, 10)
    assert content(tmp_path) == FILES


def test_a_passing_problem_is_tried_again_and_a_lasting_one_is_an_error(server, tmp_path):
    server.moods["baby.t2.train"] = ["busy", "cut short"]
    get_amazon(tmp_path / "a", source=server.address)
    assert content(tmp_path / "a") == FILES
    for mood, told in (("cut short", r"17 bytes read"), ("busy", "503")):
        server.moods["baby.t2.train"] = [mood] * 3
        with pytest.raises(EnvironmentProblem, match=rf"train could not be fetched \(.*{told}.*\)\. Check the address"):
            get_amazon(tmp_path / "b", source=server.address)
    assert content(tmp_path / "b") == {"baby.t2.test": FILES["baby.t2.test"]}
    del server.files["video.t5.train"]
    with pytest.raises(EnvironmentProblem, match=r"/data/video\.t5\.train could not be fetched \(.*404"):
        get_amazon(tmp_path / "b", source=server.address)
    assert server.asked.count("video.t5.train") == 2, "once before it was gone"


def test_other_content_is_refused_and_not_kept(server, tmp_path):
    server.files["baby.t2.train"] = b"another lamp\t1\nbroken\t-1\n"
    with pytest.raises(
        EnvironmentProblem,
        match=r"fetched as baby\.t2\.train is not the one this version knows.*expected [0-9a-f]{12}…",
    ):
        get_amazon(tmp_path, source=server.address)
    assert "baby.t2.train" not in content(tmp_path)
    (tmp_path / "baby.t2.train").write_bytes(server.files["baby.t2.train"])
    states = {file.name: file.state for file in check_amazon(tmp_path).wrong}
    assert states["baby.t2.train"] == "other content"


def test_a_file_without_a_checksum_must_read_as_a_task(server, tmp_path):
    for payload in (b"<!DOCTYPE html>\n<p>Sign in</p>\n", b"", b"only one label\t1\n", b"\xff\xfe\t1\n"):
        server.files["music.t2.train"] = payload
        with pytest.raises(EnvironmentProblem, match=r"fetched as music\.t2\.train is not a file of the data\. "):
            get_amazon(tmp_path, source=server.address)
        assert "music.t2.train" not in content(tmp_path)


def test_a_wrong_address_and_a_full_disk_are_errors(server, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"'file:///etc/.*is not a web address"):
        get_amazon(tmp_path, source="file:///etc")
    for address in ("http://127.0.0.1:9/nothing", "http://[::1/data", "http://127.0.0.1:notaport/data"):
        with pytest.raises(EnvironmentProblem, match="could not be fetched"):
            get_amazon(tmp_path, source=address)

    def full(path, payload):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(EnvironmentProblem, match=r"Could not write .*: No space left on device\. Make room"):
        get_amazon(tmp_path, source=server.address)
    assert content(tmp_path) == {}


def test_the_commands_fetch_and_check(server, tmp_path):
    folder = tmp_path / "amazon"
    done = run("data", "get", "amazon", "--out", folder, "--from", server.address)
    assert (done.exit_code, done.stdout) == (0, f"{folder}\n")
    assert "fetch 10/10" in done.stderr
    assert content(folder) == FILES
    assert run("data", "check", folder).exit_code == 0
    (folder / "music.t2.train").unlink()
    (folder / "baby.t2.train").write_bytes(b"no tab\n")
    checked = run("data", "check", folder)
    assert checked.exit_code == 2
    rows = [line.split()[:2] for line in checked.stdout.splitlines()]
    assert [row for row in rows if row[0:1] and "." in row[0]] == [
        ["baby.t2.train", "damaged"],
        ["music.t2.train", "missing"],
    ]
    assert "2 of 10 files are missing or not as they should be" in checked.stderr
    about = json.loads(run("data", "check", folder, "--json").stdout)
    assert (about["format"], about["complete"]) == (1, False)
    for empty in (tmp_path, tmp_path / "gone"):
        assert f"python -m experiments data get amazon --out {empty}" in run("data", "check", empty).stderr


def test_every_known_file_has_its_checksum():
    known = amazon.known_checksums()
    assert len(known) == 191
    assert not set(known) & set(amazon.WITHOUT_CHECKSUM)
    assert all(len(sha256) == 64 for sha256 in known.values())
    domains = {name.split(".")[0] for name in known} - {"workspace"}
    assert len(domains) == 23
    tasks = {name.rpartition(".")[0] for name in (*known, *amazon.WITHOUT_CHECKSUM) if name.endswith(".train")}
    assert len(tasks) == 69


def test_the_data_at_hand_lack_six_files():
    if not DATA.is_dir():
        pytest.skip(f"the Amazon data are not in {DATA}; set MANYMETRICS_DATA")
    assert [file.name for file in check_amazon(DATA).wrong] == list(amazon.WITHOUT_CHECKSUM)
