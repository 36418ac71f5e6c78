"""From shared tasks to the next model: opting in, at least three clients, going live, comparing, rolling back."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient
from tests.service.conftest import EXAMPLES, caller_of, client_of, create, make_key, on_sqlite
from tests.service.server import listening

import manymetrics as mm
from command_line import done
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.domain.shared_tasks import bank_of, require_clients
from manymetrics.service.storage.tables import Tenant, Version

ASKED = {"texts": ["play jazz", "the lamp"]}


@pytest.fixture
def other_folder(make_model, tmp_path):
    make_model(seed=1).save(tmp_path / "other")
    return tmp_path / "other"


def test_only_tasks_that_were_opted_in_are_shared_and_nobody_is_named(make_client):
    operator = make_client("operator", scopes=("operate",))
    for name, shared in (("acme", True), ("globex", False)):
        create(make_client(name), name=f"{name}-bot", shared=shared)
    found = operator.get("/v1/shared-tasks")
    (task,) = found.json()["items"]
    assert task["texts"] == [one["text"] for one in EXAMPLES]
    assert "acme" not in found.text
    assert "globex" not in found.text
    make_client("acme").patch(f"/v1/classifiers/{task['id']}", json={"shared": False})
    assert operator.get("/v1/shared-tasks").json()["items"] == []  # at once


def test_too_few_clients_are_refused_before_anything_is_learned():
    with pytest.raises(mm.InputError, match="The shared tasks are of 2 clients, and at least 3 are needed"):
        require_clients({"a": "x", "b": "y", "c": "y"}, 3)


def test_the_tasks_of_one_client_are_one_source():
    told = {"texts": ["a", "b"], "labels": ["x", "y"], "client": "client-1"}
    bank = bank_of([{"task": "task-1", **told}, {"task": "task-2", **told}])
    assert [task.source for task in bank] == ["client-1", "client-1"]


@pytest.mark.parametrize("is_worse", [True, False])
def test_a_classifier_gets_the_new_model_unless_it_is_worse_and_can_be_rolled_back(
    service, client, classifier, other_folder, is_worse
):
    path = f"/v1/classifiers/{classifier}"
    first, before = client.get(path).json(), client.post(f"{path}/predictions", json=ASKED).json()
    fingerprint = service.models.put_live(other_folder)
    low = 1.1 if is_worse else 0.0  # of the interval of the accuracy with the earlier model
    with service.database.write() as session:
        session.execute(update(Version).values(low=low))
    assert [service.readapting.run_once() for _ in range(2)] == [1, 0]
    latest = client.get(f"{path}/versions").json()["items"][-1]
    if is_worse:
        assert (latest["reason"], latest["model_version"]) == ("created", first["model_version"])
        return
    assert (latest["reason"], latest["model_version"]) == ("model", fingerprint)
    assert latest["accuracy_before"] == first["estimate"]["accuracy"]
    back = client.post(f"{path}/rollback", json={"version": 1}).json()
    assert back["model_version"] == first["model_version"]
    assert service.readapting.run_once() == 0  # a classifier that was rolled back stays with the earlier model
    assert client.post(f"{path}/predictions", json=ASKED).json()["items"] == before["items"]


@pytest.mark.parametrize(("limit", "version"), [(6, 2), (5, 1)])
def test_a_new_model_is_used_within_the_limits_of_the_tenant_and_no_classifier_delays_others(
    *, make_app, other_folder, monkeypatch, limit, version
):
    app = make_app(most_examples=2)
    service, client = app.state.service, client_of(app, most_examples=len(EXAMPLES))
    made = [create(client) for _ in range(2)]
    with service.database.write() as session:
        session.execute(update(Tenant).values(limits={"most_examples": limit}))
    service.models.put_live(other_folder)
    monkeypatch.setattr("manymetrics.service.domain.readapt._is_worse", lambda *_: False)
    assert [service.readapting.run_once() for _ in range(2)] == [2, 0]
    assert [client.get(f"/v1/classifiers/{one['id']}").json()["version"] for one in made] == [version] * 2


def test_another_process_sees_a_new_model_and_changed_classifiers(service, make_app, client, classifier, other_folder):
    second = TestClient(make_app(), headers=client.headers)
    client.post(f"/v1/classifiers/{classifier}/examples", json={"add": [{"text": "my meeting", "label": "meeting"}]})
    found = second.post(f"/v1/classifiers/{classifier}/predictions", json={"texts": ["my meeting"]}).json()
    assert (found["version"], found["items"][0]["label"]) == (2, "meeting")
    fingerprint = service.models.put_live(other_folder)
    assert create(second)["model_version"] == fingerprint
    service.tenants.revoke(client.headers["Authorization"].split("_")[1])
    assert second.get("/v1/classifiers").status_code == 401


def test_a_word_of_one_client_is_in_no_byte_that_another_is_served(make_client):
    canary = "xylocanary"
    owner, other = make_client("owner"), make_client("other")
    private = [{"text": text, "label": canary} for text in (f"{canary} please", f"my {canary}")]
    create(owner, *private, name=canary, shared=True)
    own = create(other)["id"]
    asked = [other.get(path) for path in ("/v1/classifiers", f"/v1/classifiers/{own}")]
    questions = {"predictions": ASKED, "explanations": {"text": "lamp"}, "evaluation": {}}
    asked += [other.post(f"/v1/classifiers/{own}/{what}", json=body) for what, body in questions.items()]
    assert all(canary not in one.text for one in asked)


@on_sqlite
def test_the_command_learns_from_a_service_and_puts_the_model_live(app, service, tiny_recipe, make_bank, tmp_path):
    operator = make_key(service, "operator", scopes=("operate",))
    for number, task in enumerate(make_bank(3)):
        known = [Labelled(text, label) for text, label in zip(task.train.texts, task.train.labels, strict=True)]
        service.classifiers.create(caller_of(service, f"client {number}"), name="task", examples=known, shared=True)
    (tmp_path / "tiny.toml").write_text(tiny_recipe.as_toml())
    with listening(app) as url:
        options = f"--recipe {tmp_path}/tiny.toml --out {tmp_path}/next --workers 1 -q".split()
        command = [sys.executable, "-m", "manymetrics", "learn", "--from-service", url, *options]
        environment = {**os.environ, "MANYMETRICS_KEY": operator}
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    learned = mm.load_model(tmp_path / "next")
    assert learned.clusters.names
    assert all(len(cluster) >= 3 for cluster in learned.clusters)  # every client has one task
    assert all(name.startswith("task-") for name in learned.clusters.names)
    for metric in learned.metrics:
        assert not metric.tasks or len(metric.tasks) >= 3
    live = done("service", "model", tmp_path / "next", "--database", service.settings.database)
    assert live.stdout.strip() == learned.fingerprint
    assert service.models.live().fingerprint == learned.fingerprint
    while service.readapting.run_once():
        pass
