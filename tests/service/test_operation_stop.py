"""The service as a process: it ends as one should, survives being killed, and nginx guards it from slow clients."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.service import kill
from tests.service.server import UNBOUNDED, Server

from command_line import done

KILLS = int(os.environ.get("KILLS", "4"))  # an even number
DEPLOY = Path(__file__).parents[2] / "deploy"
BUSY = {"name": "busy", "examples": [{"text": f"lamp {n}", "label": f"label {n % 40}"} for n in range(400)]}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/service.db"


@pytest.fixture
def headers(url):
    (writer, *_) = kill.make_writers(url)
    return {"Authorization": f"Bearer {writer.key}", "Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path, url, model_folder, headers):
    patient = {"MANYMETRICS_STOP_SECONDS": "600"}  # what is under way takes as long as a busy machine takes
    found = Server(tmp_path, database=url, model=model_folder, **UNBOUNDED, **patient).start()
    yield found
    found.kill()


def test_what_is_under_way_is_answered_before_the_service_ends(server, headers):
    with ThreadPoolExecutor(3) as pool:
        ask = partial(server.ask, "POST", "/v1/classifiers", json.dumps(BUSY), headers, seconds=600)
        asked = [pool.submit(ask) for _ in range(3)]
        while server.ask("GET", "/health")[0] == 200 and not _arrived(server, 3):
            time.sleep(0.01)
        status = server.end(seconds=900)
        answers = [one.result() for one in asked]
    assert [answer[0] for answer in answers] == [201, 201, 201]
    assert status == 0
    with pytest.raises(OSError, match=r"refused"):
        server.ask("GET", "/health")


def _arrived(server, count):
    """Whether so many connections beside this one are open."""
    with Path(f"/proc/{server.process.pid}/net/tcp").open(encoding="ascii") as lines:
        wanted = f"0100007F:{server.port:04X}"
        return sum(line.split()[1] == wanted and line.split()[3] == "01" for line in lines) >= count


def test_half_a_request_does_not_keep_the_service_from_ending(tmp_path, url, model_folder, headers):
    server = Server(tmp_path, database=url, model=model_folder, MANYMETRICS_STOP_SECONDS="1").start()
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        sent = {**headers, "Host": "x", "Content-Length": "9"}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        half.sendall(f"POST /v1/classifiers HTTP/1.1\r\n{head}\r\n{{".encode())
        time.sleep(0.2)
        assert server.end() == 0


def test_the_log_of_a_process_is_lines_of_json(server, headers):
    server.ask("GET", "/v1/classifiers", headers=headers)
    server.end()
    whole = server.log.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in whole[whole.index("{") :].splitlines()]  # before it, a word to who starts it
    assert any(line.get("route") == "/v1/classifiers" and line["status"] == 200 for line in lines)
    assert any("shut" in line.get("event", "").lower() for line in lines)


def test_nothing_acknowledged_is_lost_when_the_service_is_killed(tmp_path, url, model_folder):
    found = kill.survive(tmp_path, url, model_folder, kills=KILLS)
    assert found["killed"] == {"service": KILLS}
    assert found["done"] > 0


def test_nothing_acknowledged_is_lost_when_postgresql_is_stopped_at_once(tmp_path, postgres, model_folder):
    found = kill.survive(tmp_path, postgres.new_database(), model_folder, kills=KILLS, postgres=postgres)
    assert found["killed"] == {"service": KILLS / 2, "database": KILLS / 2}


def test_the_loop_of_kills_would_notice_a_lost_write(tmp_path, url):
    (writer, *_) = kill.make_writers(url)
    writer.kept["cls_1"] = kill.Kept("home", [])
    with pytest.raises(AssertionError, match="cls_1"):
        kill.check(url, [writer])


@pytest.fixture
def nginx(tmp_path, server):
    """nginx with the configuration that is handed out, on a free port and without certificates."""
    if not shutil.which("nginx"):
        pytest.skip("nginx is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    whole = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    lines = [line for line in whole.splitlines() if "ssl_" not in line and "[::]" not in line]
    changed = "\n".join(lines).replace("listen 443 ssl http2", f"listen 127.0.0.1:{port}")
    changed = changed.replace("listen 80;", f"listen 127.0.0.2:{port};")
    changed = changed.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}").replace("/var/log/nginx", str(tmp_path))
    changed = changed.replace("_timeout 10s", "_timeout 1s").replace("_timeout   10s", "_timeout   1s")
    user = "user root;" if os.geteuid() == 0 else ""
    main = (
        f"{user} daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log; events {{}} http {{ {changed} }}"
    )
    (tmp_path / "nginx.conf").write_text(main, encoding="utf-8")
    process = subprocess.Popen(["nginx", "-c", tmp_path / "nginx.conf", "-p", tmp_path])
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.02)
    yield port
    process.terminate()
    process.wait()


def test_nginx_passes_requests_on_and_lets_go_of_slow_clients(nginx, server, headers):
    through = Server.ask.__get__(type("Through", (), {"port": nginx})())
    assert through("GET", "/health")[0] == 200
    assert through("POST", "/v1/classifiers", json.dumps(BUSY), headers)[0] == 201
    assert through("POST", "/v1/classifiers", "x" * 5_000_000, headers)[0] == 413
    half_head, half_body = (socket.create_connection(("127.0.0.1", nginx), timeout=60) for _ in range(2))
    half_head.sendall(b"GET /health HT")
    half_body.sendall(b"POST /v1/classifiers HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
    for half in (half_head, half_body):
        with half:
            while half.recv(4096):  # ends when nginx closes the connection
                pass
    assert through("GET", "/health")[0] == 200


def test_the_unit_of_systemd_is_accepted(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    unit = tmp_path / "manymetrics.service"
    text = (DEPLOY / "manymetrics.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/manymetrics/bin/manymetrics", shutil.which("true")), encoding="utf-8")
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "manymetrics.service:" not in verified.stderr


def test_what_is_handed_out_agrees_with_the_service():
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert "client_max_body_size  4m" in nginx
    assert re.findall(r"^ *proxy_next_upstream (.*);", nginx, re.MULTILINE) == ["error timeout"]  # no POST again
    assert nginx.count("proxy_set_header X-Forwarded-Proto $scheme;") == 1
    unit, image = (DEPLOY / name for name in ("manymetrics.service", "Containerfile"))
    for path in (unit, image):
        text = path.read_text(encoding="utf-8")
        assert "SIGTERM" in text
        assert "serve" in text


def test_the_address_that_is_printed_accepts_connections(url, monkeypatch):
    def connect(app, listening):
        socket.create_connection(listening.getsockname(), timeout=5).close()

    monkeypatch.setattr("manymetrics.cli.serve._run", connect)
    assert "first key" in done("serve", "--database", url, "--port", 0).stdout
