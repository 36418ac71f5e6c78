"""CSV and TSV files as spreadsheets and other programs write them."""

import pytest

from manymetrics.collect import import_tasks, load_tasks, read_examples
from manymetrics.errors import InputError, TaskFormatError

ROWS = [("wo ist es, bitte", "track"), ("track; now", "track"), ("my money | back", "refund"), ("refund", "refund")]


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="shop.csv"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / name

    return write_file


def table(delimiter, header=("text", "label"), rows=ROWS):
    return "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in [header, *rows])


def pairs_of(task):
    return [pair for part in (task.train, task.valid, task.test) for pair in zip(part.texts, part.labels, strict=True)]


def imported(path, **options):
    return sorted(pairs_of(import_tasks(path, **options).bank["shop"]))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_whatever_the_columns_are_called(write, delimiter):
    assert imported(write(table(delimiter))) == sorted(ROWS)
    assert imported(write(table(delimiter, header=("Text", "LABEL")))) == sorted(ROWS)
    named = {"text_column": "Anfrage", "label_column": "Kategorie"}
    assert imported(write(table(delimiter, header=("Anfrage", "Kategorie"))), **named) == sorted(ROWS)
    examples = read_examples(write(table(delimiter), "shop.train.csv"))
    assert list(zip(examples.texts, examples.labels, strict=True)) == ROWS


def test_watsons_files_without_a_header_may_be_separated_by_semicolons(write):
    path = write(table(";", header=("where is it", "track")))
    assert import_tasks(path).format == "watson"
    assert ("where is it", "track") in imported(path)


def test_a_delimiter_can_be_given_by_sign_or_by_name(write):
    path = write("".join(f"{text}^{label}\n" for text, label in [("text", "label"), *ROWS]))
    assert imported(path, delimiter="^") == sorted(ROWS)
    for name in ("tab", "\\t", "\t", "TAB"):
        assert imported(write(table("\t"), "shop.txt"), delimiter=name) == sorted(ROWS)
    assert imported(write(table(";"), "shop.tsv"), delimiter="semicolon") == sorted(ROWS)
    for wrong in ("::", '"', ""):
        with pytest.raises(InputError, match=r"The delimiter is .* expected one character. Try ',', ';'"):
            import_tasks(path, delimiter=wrong)
    with pytest.raises(InputError, match=r"jsonl has no delimiter to choose. Leave it out, or give --format csv"):
        import_tasks(write("", "shop.jsonl"), delimiter=",")
    with pytest.raises(InputError, match="parquet has no encoding to choose"):
        import_tasks(write("", "shop.parquet"), encoding="cp1252")


def test_wrong_columns_are_told_one_by_one_in_a_semicolon_file(write):
    path = write(table(";", header=("Anfrage", "Kategorie")))
    with pytest.raises(TaskFormatError, match="found the columns 'anfrage', 'kategorie', expected 'label' or 'intent'"):
        import_tasks(path, text_column="Anfrage")


def test_a_header_of_a_tsv_file_is_not_an_example(write):
    path = write("\n Text \tLabel\nand\ttabs\ta\nb\tb\n", "shop.tsv")
    found = import_tasks(path)
    assert sorted(pairs_of(found.bank["shop"])) == [("and\ttabs", "a"), ("b", "b")]
    assert found.notes == (f"{path}: line 2 is a header; the texts are under 'text', the labels under 'label'.",)
    path = write("utterance\tintent\na\tx\nb\ty\n", "shop.train.tsv")
    assert load_tasks(path.parent)["shop"].labels == ("x", "y")


def test_a_tsv_file_with_named_columns_is_read_by_their_names(write):
    content = 'id\tqueue\tbody\tclient\n1\ttrack\t"said ""where"""\tA\n2\trefund\t"a" and "b"\tA\n3\ttrack\tc\tA\n'
    path = write(content, "shop.tsv")
    found = imported(path, text_column="Body", label_column="Queue")
    assert found == [('"a" and "b"', "refund"), ("c", "track"), ('said "where"', "track")]
    assert import_tasks(path, text_column="body", label_column="queue", task_column="client").bank.names == ("A",)
    with pytest.raises(
        TaskFormatError, match="line 1: found the columns 'id', 'queue', 'body', 'client', expected 'x'"
    ):
        import_tasks(path, text_column="x", label_column="queue")
    path = write("id\ttext\tlabel\n1\ta\n", "shop.tsv")
    with pytest.raises(
        TaskFormatError, match=r"line 2: found 2 fields, expected 3 as in the header. If fields with line"
    ):
        import_tasks(path)


def test_a_first_line_that_may_be_a_header_is_told(write):
    rows = "".join(f"text {number}\tlabel {number % 2}\n" for number in range(20))
    found = import_tasks(write("Anfrage\tKategorie\n" + rows, "shop.tsv"))
    assert "label 'kategorie', which no other line has. if it is a header, name" in found.notes[0].casefold()
    assert import_tasks(write(rows, "shop.tsv")).notes == ()
