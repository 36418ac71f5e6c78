"""What a client does with classifiers over HTTP, with known answers."""

from tests.service.conftest import EXAMPLES


def test_a_classifier_is_made_of_examples_and_answers(client, classifier):
    found = client.post(f"/v1/classifiers/{classifier}/predictions", json={"texts": ["play jazz", "lamp on"]}).json()
    assert [one["label"] for one in found["items"]] == ["music", "lamp"]
    assert found["version"] == 1
    first = found["items"][0]
    assert first["nearest"][0]["text"] == "play some jazz"
    assert abs(sum(first["probabilities"].values()) - 1) < 1e-6


def test_examples_are_added_and_removed_as_one_version(client, classifier):
    there = client.get(f"/v1/classifiers/{classifier}/examples").json()["items"]
    assert [one["text"] for one in there] == [one["text"] for one in EXAMPLES]
    body = {"add": [{"text": "move my meeting", "label": "meeting"}], "remove": [there[0]["id"]]}
    changed = client.post(f"/v1/classifiers/{classifier}/examples", json=body).json()
    assert (changed["version"], changed["labels"], changed["examples"]) == (2, ["lamp", "meeting", "music"], 6)


def test_rolling_back_makes_a_version_like_the_earlier_one(client, classifier):
    asked = {"texts": ["play jazz", "lamp on"]}
    before = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    client.post(f"/v1/classifiers/{classifier}/examples", json={"add": [{"text": "play jazz", "label": "lamp"}]})
    changed = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    assert changed["items"] != before["items"]
    back = client.post(f"/v1/classifiers/{classifier}/rollback", json={"version": 1})
    assert back.json()["version"] == 3
    after = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    assert after["items"] == before["items"]
    versions = client.get(f"/v1/classifiers/{classifier}/versions").json()["items"]
    assert [(one["version"], one["reason"], one["current"]) for one in versions] == [
        (1, "created", False),
        (2, "examples", False),
        (3, "rollback", True),
    ]
