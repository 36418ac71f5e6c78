"""CSV and TSV files as spreadsheets and other programs write them."""

import pytest
from tests.collect.conftest import pairs, pairs_of

from manymetrics.collect import import_tasks, load_tasks, read_examples
from manymetrics.errors import InputError, TaskFormatError

ROWS = [("wo ist es, bitte", "track"), ("track; now", "track"), ("my money | back", "refund"), ("refund", "refund")]
TEXTS_FIRST = [f"text {number}\t{('good', 'bad')[number % 2]}\n" for number in range(20)]
LABELS_FIRST = [f"{('good', 'bad')[number % 2]}\ttext {number}\n" for number in range(20)] + ["good\ttext 0\n"]


def table(delimiter, header=("text", "label")):
    return "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in [header, *ROWS])


def imported(path, **options):
    return pairs_of(import_tasks(path, **options).bank["shop"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_detected_whatever_the_columns_are_called(make, delimiter):
    assert imported(make("shop.csv", table(delimiter))) == sorted(ROWS)
    assert imported(make("shop.csv", table(delimiter, header=("Text", "LABEL")))) == sorted(ROWS)
    columns = {"text_column": "Anfrage", "label_column": "Kategorie"}
    assert imported(make("shop.csv", table(delimiter, header=("Anfrage", "Kategorie"))), **columns) == sorted(ROWS)
    assert pairs(read_examples(make("shop.train.csv", table(delimiter)))) == ROWS


def test_a_delimiter_can_be_given_by_character_or_by_name(make):
    path = make("shop.csv", "".join(f"{text}^{label}\n" for text, label in [("text", "label"), *ROWS]))
    assert imported(path, delimiter="^") == sorted(ROWS)
    for name in ("tab", "\\t", "\t"):
        assert imported(make("shop.txt", table("\t")), delimiter=name) == sorted(ROWS)
    assert imported(make("shop.tsv", table(";")), delimiter=";") == sorted(ROWS)
    for wrong in ("::", '"', ""):
        with pytest.raises(InputError, match=r"The delimiter is .* expected one character. Try ',', ';'"):
            import_tasks(path, delimiter=wrong)
    with pytest.raises(InputError, match=r"jsonl has no delimiter to choose. Leave it out, or give another --format"):
        import_tasks(make("shop.jsonl", ""), delimiter=",")
    with pytest.raises(InputError, match="parquet has no encoding to choose"):
        import_tasks(make("shop.parquet", ""), encoding="cp1252")


def test_a_header_of_a_tsv_file_is_not_an_example(make):
    path = make("shop.tsv", "\n Text \tLabel\nand\ttabs\ta\nb\tb\n")
    result = import_tasks(path)
    assert pairs_of(result.bank["shop"]) == [("and\ttabs", "a"), ("b", "b")]
    assert result.notes == (f"{path}: line 2 is a header; the texts are under 'text', the labels under 'label'.",)
    path = make("shop.train.tsv", "utterance\tintent\na\tx\nb\ty\n")
    assert load_tasks(path.parent)["shop"].labels == ("x", "y")


def test_a_tsv_file_with_named_columns_is_read_by_their_names(make):
    content = 'id\tqueue\tbody\tclient\n1\ttrack\t"said ""where"""\tA\n2\trefund\t"a" and "b"\tA\n3\ttrack\tc\tA\n'
    path = make("shop.tsv", content)
    expected = [('"a" and "b"', "refund"), ("c", "track"), ('said "where"', "track")]
    assert imported(path, text_column="Body", label_column="Queue") == expected
    assert import_tasks(path, text_column="body", label_column="queue", task_column="client").bank.names == ("A",)
    with pytest.raises(TaskFormatError, match="line 1: found the columns 'id', 'queue', 'body', 'client', expected"):
        import_tasks(path, text_column="x", label_column="queue")
    path = make("shop.tsv", 'id\ttext\tlabel\n1\t"a\nb"\tx\n2\tc\ty\n')
    with pytest.raises(TaskFormatError, match=r"line 2: found 2 fields, expected 3 .* --format csv --delimiter tab\."):
        import_tasks(path)
    assert imported(path, format="csv", delimiter="tab") == [("a\nb", "x"), ("c", "y")]


def test_a_first_line_that_may_be_a_header_is_noted(make):
    notes = import_tasks(make("shop.tsv", "Anfrage\tKategorie\n" + "".join(TEXTS_FIRST))).notes
    assert "label 'Kategorie', which no other line has. If it is a header, name" in notes[0]
    assert import_tasks(make("shop.tsv", "".join(TEXTS_FIRST))).notes == ()


def test_columns_of_a_file_without_a_header_are_chosen_by_number(make):
    for name, delimiter in (("shop.csv", ","), ("shop.tsv", "\t"), ("shop.txt", ";")):
        path = make(name, "".join(f'{label}{delimiter}"{text}"{delimiter}x\n' for text, label in ROWS))
        assert imported(path, text_column="2", label_column="1") == sorted(ROWS)
    path = make("shop.csv", "0,1\n" + "".join(f'{label},"{text}"\n' for text, label in ROWS))
    assert imported(path, text_column="1", label_column="0") == sorted(ROWS), "a header of numbers is a header"
    with pytest.raises(TaskFormatError, match="found the columns '1', '2', expected '3' for the text"):
        import_tasks(make("shop.csv", "a,b\nc,d\n"), text_column="3", label_column="1")


@pytest.mark.parametrize(("name", "delimiter"), [("shop.csv", ","), ("shop.tsv", "\t")])
def test_labels_before_texts_are_noticed(make, name, delimiter):
    content = "".join(LABELS_FIRST).replace("\t", delimiter)
    with pytest.raises(InputError, match=r"first column seems to hold the labels.*--label-column 1 --text-column 2\."):
        import_tasks(make(name, content))
    assert import_tasks(make(name, content), label_column="1", text_column="2").bank["shop"].labels == ("bad", "good")
    content = "".join(TEXTS_FIRST).replace("\t", delimiter)
    assert import_tasks(make(name, content)).bank["shop"].labels == ("bad", "good")
