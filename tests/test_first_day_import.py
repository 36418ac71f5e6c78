"""A new user's data: from a file that a spreadsheet program saved to a bank that can be learned from."""

import json

import pytest

import manymetrics as mm
from command_line import assert_refused, done, printed_json, run

CLIENTS = [f"Kunde {number:02d}" for number in range(12)]
QUEUES = {
    "Rückerstattung": "ich möchte mein Geld zurück für Bestellung {}",
    "Lieferung": "wo ist mein Paket; es hat die Nummer {}",
    "Größe": "gibt es das auch in Größe {}",
}


def spreadsheet():
    """What Excel saves in Germany: semicolons, cp1252, a header, blank cells and blank rows, the same text twice."""
    rows = ["Kunde;Anfrage;Warteschlange"]
    for client in CLIENTS:
        for queue, phrase in QUEUES.items():
            rows += [f'{client};"{phrase.format(number)}";{queue}' for number in range(10)]
        rows.append(f"{client};Wo ist mein Paket?;Lieferung")
        rows.append(f"{client};wo ist mein paket;Lieferung")
    rows.insert(5, ";;")
    rows.insert(9, f"{CLIENTS[0]};noch offen;")
    rows.insert(20, f"{CLIENTS[0]};;Lieferung")
    rows.insert(30, ";ohne Kunden;Lieferung")
    return "\r\n".join([*rows, ";;", ";;"]).encode("cp1252")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "anfragen.csv").write_bytes(spreadsheet())
    return tmp_path / "anfragen.csv"


def test_each_message_names_the_next_option(path, tmp_path):
    bank = tmp_path / "bank"
    first = run("import", path, bank)
    assert_refused(first, "the byte 0xf6 is not UTF-8. Save the file as UTF-8, or import it with its encoding")
    assert_refused(first, "such as --encoding cp1252 (Windows).")
    second = run("import", path, bank, "--encoding", "cp1252")
    assert_refused(second, "found the columns 'Kunde', 'Anfrage', 'Warteschlange', which may be a header")
    assert_refused(second, "Name the columns with --text-column and --label-column")
    options = ["--encoding", "cp1252", "--text-column", "Anfrage", "--label-column", "Queue"]
    third = run("import", path, bank, *options)
    assert "found the columns 'kunde', 'anfrage', 'warteschlange', expected 'Queue' for the label" in third.stderr
    assert not bank.exists()


def test_a_spreadsheet_of_twelve_clients_becomes_a_bank(path, tmp_path):
    bank = tmp_path / "bank"
    options = ["--encoding", "cp1252", "--text-column", "Anfrage", "--label-column", "Warteschlange"]
    options += ["--task-column", "Kunde"]
    strict = run("import", path, bank, *options, "--strict")
    assert strict.exit_code == 2
    for message in (", line 10: the label is blank.", ", line 21: the text is blank.", ", line 31: the task is blank."):
        assert message in strict.stderr
    assert not bank.exists()
    result = done("import", path, bank, *options, "--json")
    assert "warning: 3 rows are left out." in result.stderr
    report = json.loads(result.stdout)
    assert report["rows_left_out"] == 3
    assert [task["name"] for task in report["tasks"]] == [client.replace(" ", "-") for client in CLIENTS]
    assert report["tasks"][0] == {
        "name": "Kunde-00", "labels": 3, "train": 20, "valid": 6, "test": 6, "counter_examples": 0,
    }  # fmt: skip
    read = mm.load_tasks(bank, strict=True)
    assert read["Kunde-11"].labels == ("Größe", "Lieferung", "Rückerstattung")
    assert [task["shared"] for task in printed_json("inspect", bank)["tasks"]] == [0] * 12, "splits share no text"
    assert "Is the bank large enough? manymetrics evaluate --leave-one-out" in done("inspect", bank).stderr


SENTIMENTS = ["Positive", "positive", "POSITIVE", "negative", "Negative", "NEGATIVE ", "neutral", "Neutral", "neu tral"]


def test_labels_that_differ_in_case_are_reported_and_joined_on_request(tmp_path):
    rows = [f'"text {sentiment} {number}",{sentiment}' for sentiment in SENTIMENTS for number in range(10)]
    (tmp_path / "shop.csv").write_text("\n".join(["text,label", *rows, ""]))  # `neu tral` is another word
    result = done("import", tmp_path / "shop.csv", tmp_path / "bank")
    (note,) = [line for line in result.stderr.splitlines() if "only in case or white space" in line]
    assert "count as different labels: shop: 'NEGATIVE' (10), 'Negative' (10), 'negative' (10); shop: 'Neutral'" in note
    assert note.endswith("`import --fold-labels` joins them.")
    assert "only in case or white space" in done("inspect", tmp_path / "bank").stdout
    groups = printed_json("inspect", tmp_path / "bank")["tasks"][0]["similar_labels"]
    assert groups[1] == {"Neutral": 10, "neutral": 10}
    folded = done("import", tmp_path / "shop.csv", tmp_path / "folded", "--fold-labels", "--json")
    assert "are joined, each group under its most frequent label: shop: 'NEGATIVE' (10)" in folded.stderr
    assert json.loads(folded.stdout)["tasks"][0]["labels"] == 4
    read = mm.load_tasks(tmp_path / "folded")["shop"]
    assert read.labels == ("NEGATIVE", "Neutral", "POSITIVE", "neu tral")
    assert sum(map(len, (read.train, read.valid, read.test))) == 90
    assert "only in case" not in done("inspect", tmp_path / "folded").stdout
