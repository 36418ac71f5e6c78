"""Files as they lie about: pipes, links, giants, and letters in other encodings."""

import json
import os
import re
import signal

import pytest

from manymetrics.collect import import_tasks, load_tasks, opening
from manymetrics.collect.formats import read_examples
from manymetrics.errors import InputError, TaskFormatError, TaskLeftOut

TRAIN = "yes please\tyes\nno thanks\tno\n"
UMLAUTS = "ja, schön\tyes\nnein, überhaupt nicht\tno\n"
GIANT = 3_000_000_000  # bytes, none of which is on the disk


@pytest.fixture(autouse=True)
def never_wait():
    """A pipe that is waited for ends the test instead of holding up all others."""

    def give_up(*_):
        raise AssertionError("still waiting for something that never comes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bank(tmp_path):
    place = tmp_path / "bank"
    place.mkdir()
    (place / "good.train.tsv").write_text(TRAIN)
    return place


def make_giant(path, head=b""):
    path.write_bytes(head)
    os.truncate(path, GIANT)
    return path


def test_a_pipe_or_a_device_is_refused_and_never_waited_for(tmp_path, bank):
    pipe = tmp_path / "rows.tsv"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        for read in (
            read_examples,
            lambda one: import_tasks(one, format="tsv"),
            lambda one: import_tasks(one, format="clu"),
        ):
            with pytest.raises(
                TaskFormatError, match=f"{path}: this is not a regular file. Save what it gives as a file"
            ):
                read(path)
    for name in ("a.train.tsv", "b.yml", "c.json", "manifest.json"):
        os.mkfifo(bank / name)
    assert load_tasks(bank, strict=True).names == ("good",)


def test_pipes_inside_a_source_are_passed_over(tmp_path):
    for name in ("intents/pipe.json", "intents/other/other.json", "train.csv", "bot.yml", "README.md"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / "source" / name)
    with pytest.raises(InputError, match="found neither tables"):
        import_tasks(tmp_path / "source")
    (tmp_path / "source" / "test.csv").write_text("text,label\na,0\nb,1\n")
    with pytest.raises(InputError, match=r"label|no examples"):
        import_tasks(tmp_path / "source")


def test_a_giant_beside_the_tasks_is_not_read(bank):
    for name in ("film.json", "film.md", "film.yml"):
        make_giant(bank / name)
    assert load_tasks(bank, strict=True).names == ("good",)


def test_a_giant_that_claims_to_be_a_task_is_left_out_with_its_size(bank):
    for name, head in (
        ("a.train.tsv", b""),
        ("b.yml", b"nlu:\n"),
        ("c.train.parquet", b"PAR1"),
        ("d.json", b'{"rasa_nlu_data":'),
    ):
        make_giant(bank / name, head)
    with pytest.warns(TaskLeftOut) as caught:
        assert load_tasks(bank).names == ("good",)
    told = [str(warning.message) for warning in caught]
    limits = ("300,000,000", "50,000,000", "300,000,000", "50,000,000")
    assert [left[:3] for left in told] == ["'a'", "'b'", "'c'", "'d'"]
    assert all(
        f"the file has 3,000,000,000 bytes, {most} are the most" in one for one, most in zip(told, limits, strict=True)
    )


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "MAX_WHOLE_BYTES", 1_000)
    path = tmp_path / "a.tsv"
    path.write_text(TRAIN + "x" * 1_001)
    with pytest.raises(
        TaskFormatError, match=r"a\.tsv, line 3: the line is longer than 1,000 bytes\. Check the line ends"
    ):
        read_examples(path)


def test_a_bank_follows_no_link_that_leads_out_of_it(tmp_path, bank):
    secret = tmp_path / "letters.txt"
    secret.write_text("dear anna\tsecret\ndear ben\tsecret too\n")
    (bank / "a.train.tsv").symlink_to(secret)
    (bank / "letters.md").symlink_to(secret)
    (bank / "inside.train.tsv").symlink_to("good.train.tsv")
    with pytest.warns(
        TaskLeftOut, match=re.escape("a.train.tsv: this link leads out of the folder and is not followed")
    ):
        found = load_tasks(bank)
    assert found.names == ("good", "inside")
    assert [left.name for left in found.left_out] == ["a"]
    with pytest.raises(TaskFormatError, match="leads out of the folder"):
        load_tasks(bank, strict=True)
    (bank / "manifest.json").symlink_to(secret)
    with pytest.raises(
        TaskFormatError, match=r"manifest\.json: this link leads out of .*bank and is not followed"
    ) as told:
        load_tasks(bank)
    assert "anna" not in str(told.value)


@pytest.mark.parametrize("name", ["train.csv", "nlu.yml", "intents/a.json", "README.md", "dataset_infos.json"])
def test_a_source_with_a_link_that_leads_out_of_it_is_refused(tmp_path, name):
    (tmp_path / "letters.txt").write_text("nlu:\n- dear anna, this is secret\n")
    link = tmp_path / "source" / name
    link.parent.mkdir(parents=True)
    if name in ("README.md", "dataset_infos.json"):
        (link.parent / "train.csv").write_text("text,label\na,0\nb,1\n")
    link.symlink_to(tmp_path / "letters.txt")
    with pytest.raises(
        TaskFormatError, match=f"{name}: this link leads out of .* and is not followed. Copy the"
    ) as told:
        import_tasks(tmp_path / "source")
    assert "anna" not in str(told.value)


def test_links_to_folders_are_not_followed_and_links_that_stay_inside_are(tmp_path):
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "test.csv").write_text("text,label\nsecret,a\n")
    source = tmp_path / "source"
    source.mkdir()
    (source / "rows.txt").write_text("text,label\none,a\ntwo,b\n")
    (source / "train.csv").symlink_to("rows.txt")
    (source / "others").symlink_to(tmp_path / "others")
    (source / "loop").symlink_to(source)
    task = import_tasks(source).bank["source"]
    assert (task.train.texts, len(task.test)) == (("one", "two"), 0)


def test_the_links_of_a_hugging_face_download_are_followed(tmp_path):
    home = tmp_path / "datasets--me--shop"
    (home / "blobs").mkdir(parents=True)
    (home / "blobs" / "0a1b").write_text("text,label\none,a\ntwo,b\n")
    snapshot = home / "snapshots" / "77"
    snapshot.mkdir(parents=True)
    (snapshot / "train.csv").symlink_to("../../blobs/0a1b")
    assert import_tasks(snapshot, name="shop").bank["shop"].train.texts == ("one", "two")


def test_marked_encodings_are_read_as_they_are(tmp_path):
    path = tmp_path / "a.tsv"
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path.write_bytes(UMLAUTS.encode(encoding))
        assert read_examples(path).texts == ("ja, schön", "nein, überhaupt nicht")
    for mark, encoding in ((b"\xfe\xff", "utf-16-be"), (b"\x00\x00\xfe\xff", "utf-32-be")):
        path.write_bytes(mark + UMLAUTS.encode(encoding))
        assert import_tasks(path, encoding="cp1252").bank["a"].train.texts == ("ja, schön", "nein, überhaupt nicht")


def test_other_encodings_are_told_by_name_and_read_if_they_are_given(tmp_path):
    path = tmp_path / "a.tsv"
    for encoding, message in (
        ("cp1252", "a.tsv, line 1: the byte 0xf6 is not UTF-8; it may be cp1252 (Windows). Save the file as UTF-8, or"),
        (
            "utf-16-le",
            "a.tsv: this looks like utf-16-le without a byte order mark. Save the file as UTF-8, or import it",
        ),
        (
            "utf-16-be",
            "a.tsv: this looks like utf-16-be without a byte order mark. Save the file as UTF-8, or import it",
        ),
    ):
        path.write_bytes(UMLAUTS.encode(encoding))
        for read in (read_examples, import_tasks):
            with pytest.raises(TaskFormatError, match=re.escape(message) + f".*--encoding {encoding}"):
                read(path)
        assert import_tasks(path, encoding=encoding).bank["a"].train.texts == ("ja, schön", "nein, überhaupt nicht")


def test_a_wrong_encoding_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(UMLAUTS.encode() + "grün\tno\n".encode("latin-1"))
    with pytest.raises(
        TaskFormatError, match=r"line 3: the byte 0xfc is not UTF-8, though the lines before it are. Mend"
    ):
        import_tasks(path)
    path.write_bytes(b"a\tyes\nb\x81\tno\n")
    with pytest.raises(TaskFormatError, match=r"line 2: the byte 0x81 is not cp1252. Give another --encoding"):
        import_tasks(path, encoding="cp1252")
    path.write_bytes(UMLAUTS.encode("utf-16")[:-1])
    with pytest.raises(TaskFormatError, match="after line 1: this is not utf-16"):
        import_tasks(path)
    for name in ("klingon", "base64", "a\0b"):
        with pytest.raises(InputError, match=r"There is no encoding .* Try utf-8, utf-16, cp1252 or latin-1"):
            import_tasks(path, encoding=name)
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps({"assets": {"utterances": ["schön"]}}, ensure_ascii=False).encode("cp1252"))
    with pytest.raises(
        TaskFormatError, match=r"a\.json, line 1: the byte 0xf6 is not UTF-8\. Save the file as UTF-8\.$"
    ):
        import_tasks(path)
