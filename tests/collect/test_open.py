"""Files that are not plain UTF-8 files: pipes, links, very large files, and other encodings."""

import json
import os
import re

import pytest

from manymetrics.collect import import_tasks, load_tasks, read_examples
from manymetrics.collect.readers import open as open_module
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped

TRAIN = "yes please\tyes\nno thanks\tno\n"
UMLAUTS = "ja, schön\tyes\nnein, überhaupt nicht\tno\n"
UMLAUT_TEXTS = ("ja, schön", "nein, überhaupt nicht")
GIANT = 3_000_000_000  # bytes of a sparse file


@pytest.fixture
def bank(folder):
    return folder({"good.train.tsv": TRAIN})


@pytest.fixture
def secret(make):
    return make("letters.txt", "nlu:\n- dear anna\tsecret\ndear ben\tsecret too\n")


def test_a_pipe_or_a_device_is_refused_without_waiting(tmp_path, bank):
    os.mkfifo(tmp_path / "rows.tsv")
    readers = ((read_examples, {}), (import_tasks, {"format": "tsv"}), (import_tasks, {"format": "clu"}))
    for path in (tmp_path / "rows.tsv", "/dev/zero"):
        for read, options in readers:
            with pytest.raises(TaskFormatError, match=f"{path}: this is not a regular file. Save its content as a"):
                read(path, **options)
    for name in ("a.train.tsv", "c.json", "manifest.json"):
        os.mkfifo(bank / name)
    assert load_tasks(bank, strict=True).names == ("good",)


def test_pipes_inside_a_source_are_ignored(tmp_path):
    for name in ("intents/pipe.json", "intents/other/other.json", "train.csv", "bot.yml"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / "source" / name)
    with pytest.raises(InputError, match="found neither tables"):
        import_tasks(tmp_path / "source")
    (tmp_path / "source" / "test.csv").write_text("text,label\na,0\nb,1\n")
    with pytest.raises(InputError, match=r"label|no examples"):
        import_tasks(tmp_path / "source")


def test_very_large_files_are_not_read_and_those_named_as_tasks_are_left_out(make, bank):
    for name, head in {"film.json": b"", "a.train.tsv": b"", "c.train.parquet": b"PAR1"}.items():
        os.truncate(make(f"bank/{name}", head), GIANT)
    with pytest.warns(TaskSkipped) as caught:
        assert load_tasks(bank).names == ("good",)
    messages = [str(warning.message) for warning in caught]
    assert [message[:3] for message in messages] == ["'a'", "'c'"]
    assert all("found more than 300,000,000 bytes" in message for message in messages)


def test_a_line_without_an_end_is_refused(make, monkeypatch):
    monkeypatch.setattr(open_module, "MAX_LINE", 1_000)
    message = r"a\.tsv, line 3: found more than 1,000 characters in one line\. Check the line ends"
    with pytest.raises(TaskFormatError, match=message):
        read_examples(make("a.tsv", TRAIN + "x" * 1_001))


def test_a_bank_follows_no_link_that_leads_out_of_it(bank, secret):
    (bank / "a.train.tsv").symlink_to(secret)
    (bank / "inside.train.tsv").symlink_to("good.train.tsv")
    message = re.escape("a.train.tsv: this link leads out of the folder and is not followed")
    with pytest.warns(TaskSkipped, match=message):
        tasks = load_tasks(bank)
    assert tasks.names == ("good", "inside")
    assert [left_out.name for left_out in tasks.left_out] == ["a"]
    with pytest.raises(TaskFormatError, match=message):
        load_tasks(bank, strict=True)
    (bank / "manifest.json").symlink_to(secret)
    message = r"manifest\.json: this link leads out of .*bank and is not followed"
    with pytest.raises(TaskFormatError, match=message) as refused:
        load_tasks(bank)
    assert "anna" not in str(refused.value)


@pytest.mark.parametrize("name", ["train.csv", "nlu.yml", "intents/a.json"])
def test_a_source_with_a_link_that_leads_out_of_it_is_refused(tmp_path, secret, name):
    link = tmp_path / "source" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    message = f"{name}: this link leads out of .* and is not followed. Copy the"
    with pytest.raises(TaskFormatError, match=message) as refused:
        import_tasks(tmp_path / "source")
    assert "anna" not in str(refused.value)


def test_links_to_folders_are_not_followed_and_links_that_stay_inside_are(make):
    others = make("others/test.csv", "text,label\nsecret,a\n").parent
    source = make("source/rows.txt", "text,label\none,a\ntwo,b\n").parent
    (source / "train.csv").symlink_to("rows.txt")
    (source / "others").symlink_to(others)
    (source / "loop").symlink_to(source)
    task = import_tasks(source).bank["source"]
    assert (task.train.texts, len(task.test)) == (("one", "two"), 0)


def test_the_links_of_a_hugging_face_download_are_followed(make):
    blob = make("datasets--me--shop/blobs/0a1b", "text,label\none,a\ntwo,b\n")
    snapshot = blob.parents[1] / "snapshots" / "77"
    snapshot.mkdir(parents=True)
    (snapshot / "train.csv").symlink_to("../../blobs/0a1b")
    assert import_tasks(snapshot, name="shop").bank["shop"].train.texts == ("one", "two")


def test_a_byte_order_mark_determines_the_encoding(make):
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert read_examples(make("a.tsv", UMLAUTS.encode(encoding))).texts == UMLAUT_TEXTS
    for mark, encoding in ((b"\xfe\xff", "utf-16-be"), (b"\x00\x00\xfe\xff", "utf-32-be")):
        path = make("a.tsv", mark + UMLAUTS.encode(encoding))
        assert import_tasks(path, encoding="cp1252").bank["a"].train.texts == UMLAUT_TEXTS


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("cp1252", "a.tsv, line 1: the byte 0xf6 is not UTF-8. Save the file as UTF-8, or"),
        ("utf-16-le", "a.tsv: this seems to be utf-16-le. Save it as UTF-8, or give"),
        ("utf-16-be", "a.tsv: this seems to be utf-16-be. Save it as UTF-8, or give"),
    ],
)
def test_other_encodings_are_named_and_read_if_they_are_given(make, encoding, message):
    path = make("a.tsv", UMLAUTS.encode(encoding))
    for read in (read_examples, import_tasks):
        with pytest.raises(TaskFormatError, match=re.escape(message) + f".*--encoding {encoding}"):
            read(path)
    assert import_tasks(path, encoding=encoding).bank["a"].train.texts == UMLAUT_TEXTS


CLU = json.dumps({"assets": {"utterances": ["schön"]}}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "content", "encoding", "message"),
    [
        ("a.tsv", b"a\tyes\nb\x81\tno\n", "cp1252", "line 2: the byte 0x81 is not cp1252. Give another --encoding"),
        ("a.tsv", UMLAUTS.encode("utf-16")[:-1], None, "after line 1: this is not utf-16. Save the file as UTF-8"),
        ("a.tsv", b"", "klingon", "There is no encoding 'klingon'. Try utf-8, utf-16, cp1252 or latin-1"),
        ("a.tsv", b"", "base64", "There is no encoding 'base64'"),
        ("a.tsv", b"", "a\0b", "There is no encoding"),
        ("a.json", CLU.encode("cp1252"), None, "a.json, line 1: the byte 0xf6 is not UTF-8. Save the file as UTF-8."),
    ],
)
def test_a_wrong_encoding_is_refused(make, name, content, encoding, message):
    with pytest.raises(InputError, match=re.escape(message)):
        import_tasks(make(name, content), encoding=encoding)
