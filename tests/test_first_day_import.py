"""A first day with one's own data: from a file as it comes out of a spreadsheet to a bank that can be learned from."""

import json

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main

CLIENTS = [f"Kunde {number:02d}" for number in range(12)]
QUEUES = {
    "Rückerstattung": "ich möchte mein Geld zurück für Bestellung {}",
    "Lieferung": "wo ist mein Paket; es hat die Nummer {}",
    "Größe": "gibt es das auch in Größe {}",
}


def run(*words):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words])


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


def test_each_message_on_the_way_says_what_to_do_next(path, tmp_path):
    bank = tmp_path / "bank"
    first = run("import", path, bank)
    assert first.exit_code == 2
    assert "the byte 0xf6 is not UTF-8; it may be cp1252 (Windows)" in first.stderr
    assert "import it with --encoding cp1252." in first.stderr
    second = run("import", path, bank, "--encoding", "cp1252")
    assert second.exit_code == 2
    assert "found the columns 'Kunde', 'Anfrage', 'Warteschlange', and cannot tell whether" in second.stderr
    assert "Name the columns with --text-column and --label-column" in second.stderr
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
    for told in (", line 10: the label is blank.", ", line 21: the text is blank.", ", line 31: the task is blank."):
        assert told in strict.stderr
    assert not bank.exists()
    result = run("import", path, bank, *options, "--json")
    assert result.exit_code == 0, result.output
    assert "warning: 3 rows are left out." in result.stderr
    assert "punctuation at the ends: 12 of 384 (Kunde-00 1, " in result.stderr
    about = json.loads(result.stdout)
    assert about["rows_left_out"] == 3
    assert [task["name"] for task in about["tasks"]] == [client.replace(" ", "-") for client in CLIENTS]
    assert about["tasks"][0] == {
        "name": "Kunde-00", "labels": 3, "train": 20, "valid": 6, "test": 6, "duplicates": 1, "counter_examples": 0,
    }  # fmt: skip
    read = mm.load_tasks(bank, strict=True)
    assert read["Kunde-11"].labels == ("Größe", "Lieferung", "Rückerstattung")
    for task in read:
        sides = [{text.casefold().strip("?") for text in part.texts} for part in (task.train, task.valid, task.test)]
        assert not sides[0] & sides[1] | sides[0] & sides[2] | sides[1] & sides[2]
    assert run("inspect", bank).exit_code == 0


def test_a_table_with_texts_of_no_label_says_where_they_went(tmp_path):
    rows = [("hello there", "greet"), ("good bye", "leave"), ("buy my pills", "oos"), ("lorem ipsum", "oos")]
    (tmp_path / "bot.tsv").write_text("utterance\tintent\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    result = run("import", tmp_path / "bot.tsv", tmp_path / "bank")
    assert result.exit_code == 0, result.output
    assert "line 1 is a header; the texts are under 'utterance', the labels under 'intent'." in result.stderr
    assert "kept apart from the examples as counter-examples: 2 (bot.counter.jsonl 2)." in result.stderr
    assert mm.load_tasks(tmp_path / "bank", strict=True)["bot"].labels == ("greet", "leave")


def test_inspect_names_the_rows_that_are_left_out(tmp_path):
    (tmp_path / "shop.train.tsv").write_text("where is it\ttrack\nmoney back\trefund\n\ttrack\n")
    told = run("inspect", tmp_path).stdout
    assert "left out: shop (1 row): " in told
    assert "line 3: the text is blank. Write one, or remove the row." in told
