"""Texts and what is remembered of them; the same with labels; what a task and a bank say of both."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import WordVectors, random_vectors
from manymetrics.values import Examples, LabelledTexts, Material, Task, TaskBank, Texts

STRINGS = st.lists(st.text("ab c", max_size=6), max_size=6)
WORDS = random_vectors(rows=32, dimensions=2)


class Lengths(list):
    """The length of each text: about the simplest thing that an encoder could remember."""

    def take(self, rows):
        return Lengths(self[row] for row in rows)

    @classmethod
    def join(cls, parts):
        return cls(length for part in parts for length in part)


class Maker:
    """Makes lengths, and notes of which texts."""

    def __init__(self):
        self.asked = []

    def __call__(self, strings):
        self.asked.append(strings)
        return Lengths(map(len, strings))

    def of(self, texts):
        return texts.remember("lengths", self)


@pytest.fixture
def maker():
    return Maker()


def test_what_is_remembered_is_made_once(maker):
    texts = Texts(["a", "bcd"])
    assert maker.of(texts) == [1, 3]
    assert maker.of(texts) is maker.of(texts)
    assert maker.asked == [("a", "bcd")]


def test_what_was_made_elsewhere_is_found_as_though_it_were_made_here(maker):
    texts = Texts(["a", "bb", "ccc"])
    taken = texts.take([2, 0])
    texts.put("lengths", Lengths([1, 2, 3]))
    assert maker.of(texts) == [1, 2, 3]
    assert maker.of(taken) == [3, 1]
    assert maker.of(Texts.join([texts, taken])) == [1, 2, 3, 3, 1]
    assert maker.asked == []


def test_every_key_has_a_memory_of_its_own(maker):
    texts = Texts(["a", "bcd"])
    assert texts.remember("other", lambda strings: Lengths([0] * len(strings))) == [0, 0]
    assert maker.of(texts) == [1, 3]


def test_texts_taken_find_what_was_made_of_all(maker):
    texts = Texts(["a", "bb", "ccc"])
    maker.of(texts)
    assert maker.of(texts.take([2, 0, 2])) == [3, 1, 3]
    assert maker.of(texts[1:]) == [2, 3]
    assert maker.asked == [("a", "bb", "ccc")]


def test_texts_taken_find_what_is_made_of_all_later(maker):
    texts = Texts(["a", "bb", "ccc"])
    taken = texts.take([1])
    maker.of(texts)
    assert maker.of(taken) == [2]
    assert len(maker.asked) == 1


def test_of_texts_taken_before_anything_was_made_only_those_are_read(maker):
    texts = Texts(["a", "bb", "ccc"])
    assert maker.of(texts.take([1])) == [2]
    assert maker.asked == [("bb",)]


def test_collections_joined_find_what_was_made_of_each(maker):
    parts = Texts(["a", "bb"]), Texts(["ccc"])
    for part in parts:
        maker.of(part)
    joined = Texts.join(parts)
    assert maker.of(joined) == [1, 2, 3]
    assert maker.of(joined) is maker.of(joined)
    assert len(maker.asked) == 2


def test_a_collection_of_which_a_part_was_not_read_yet_is_read_anew(maker):
    known, new = Texts(["a"]), Texts(["bb"])
    maker.of(known)
    assert maker.of(Texts.join([known, new])) == [1, 2]
    assert maker.asked == [("a",), ("a", "bb")]


def test_a_part_without_texts_does_not_make_others_be_read_again(maker):
    known = Texts(["a"])
    maker.of(known)
    assert maker.of(Texts.join([Texts(), known, Texts()])) == [1]
    assert len(maker.asked) == 1


def test_joining_or_taking_nothing_is_no_texts(maker):
    assert list(Texts.join([])) == list(Texts(["a"]).take([])) == list(Texts()) == []
    assert maker.of(Texts.join([])) == maker.of(Texts(["a"]).take([])) == []


@given(st.lists(STRINGS, min_size=1, max_size=4), st.data())
def test_texts_taken_and_joined_in_any_way_find_what_making_anew_would_give(collections, data):
    maker, parts = Maker(), [Texts(strings) for strings in collections]
    for part in parts:
        maker.of(part)
    made = len(maker.asked)

    def some(texts):
        rows = st.lists(st.integers(0, len(texts) - 1), max_size=8) if len(texts) else st.just([])
        return texts.take(data.draw(rows))

    mixed = Texts.join([some(some(part)) for part in parts] + [some(Texts.join(parts))])
    once_more = some(mixed)
    assert maker.of(once_more) == [len(text) for text in once_more]
    assert maker.of(mixed) == [len(text) for text in mixed]
    assert all(not asked for asked in maker.asked[made:]), "only what holds no text was made after the start"


@given(st.lists(STRINGS, max_size=4), st.data())
def test_tokens_found_are_those_of_cutting_anew(collections, data):
    parts = [Texts(strings) for strings in collections]
    for part in parts:
        WORDS.tokens(part)
    joined = Texts.join(parts)
    rows = data.draw(st.lists(st.integers(0, max(0, len(joined) - 1)), max_size=8)) if len(joined) else []
    for texts in (joined, joined.take(rows)):
        found, anew = WORDS.tokens(texts), WORDS.tokenizer.cut(tuple(texts))
        assert (found.ids.tolist(), found.starts.tolist()) == (anew.ids.tolist(), anew.starts.tolist())
        assert (found.ids.dtype, found.starts.dtype) == (anew.ids.dtype, anew.starts.dtype)


def test_two_tables_with_equal_tokenizers_cut_texts_once():
    texts, other = Texts(["a b"]), WordVectors("other", 2 * WORDS.table, WORDS.tokenizer)
    assert other.tokens(texts) is WORDS.tokens(texts)


def test_a_copy_in_another_process_has_what_was_made(maker):
    texts = Texts(["a", "bb"])
    taken, joined = texts.take([1]), Texts.join([texts, texts])
    for each in (texts, taken, joined):
        maker.of(each)
        sent = pickle.loads(pickle.dumps(each))  # noqa: S301 - as a pool of workers does
        assert sent == each
        assert maker.of(sent) == maker.of(each)
    assert len(maker.asked) == 1


def test_what_is_sent_does_not_drag_along_the_texts_it_was_taken_from():
    many = Texts(f"text number {number}" for number in range(1000))
    assert len(pickle.dumps(many.take([0]))) < 300


def test_texts_made_from_texts_keep_what_was_made_and_share_nothing_made_later(maker):
    texts = Texts(["a"])
    maker.of(texts)
    again = Texts(texts)
    assert maker.of(again) == [1]
    again.remember("other", len)
    assert texts.remember("other", lambda strings: "made anew") == "made anew"
    assert len(maker.asked) == 1


def test_texts_are_a_sequence_of_strings():
    texts = Texts(["a", "b", "c"])
    assert (len(texts), texts[0], texts[-1], list(texts)) == (3, "a", "c", ["a", "b", "c"])
    assert "b" in texts
    assert texts.index("c") == 2
    assert texts[::-1] == ("c", "b", "a")
    assert texts[1:2] == Texts(["b"])
    assert repr(Texts(["a"] * 1200)) == "<1,200 texts>"
    with pytest.raises(IndexError):
        texts[3]


def test_texts_equal_a_tuple_of_the_same_strings_and_are_found_as_one():
    texts, strings = Texts(["a", "b"]), ("a", "b")
    assert texts == strings
    assert strings == texts
    assert texts == Texts(iter(["a", "b"]))
    assert texts != ("b", "a")
    assert {strings: 1}[texts] == 1


def test_labelled_texts_are_taken_and_joined_with_their_labels():
    one = LabelledTexts(Texts(["a", "b", "c"]), np.array([5, 6, 7]))
    taken = one.take([2, 0])
    joined = LabelledTexts.join([taken, one])
    assert (taken.texts, taken.labels.tolist()) == (("c", "a"), [7, 5])
    assert (joined.texts, joined.labels.tolist()) == (("c", "a", "a", "b", "c"), [7, 5, 5, 6, 7])
    assert (len(taken), len(joined)) == (2, 5)


def test_labelled_texts_joined_from_nothing_are_none_with_numbers_for_labels():
    nothing = LabelledTexts.join([])
    assert len(nothing) == len(nothing.texts) == 0
    assert nothing.labels.dtype == np.int64
    assert len(LabelledTexts(Texts(["a"]), np.array([0])).take([])) == 0


def test_examples_keep_texts_with_what_was_made_of_them(maker):
    texts = Texts(["a", "bb"])
    examples = Examples(texts, ("x", "y"))
    assert examples.texts is texts
    assert isinstance(Examples(("a", "b"), ("x", "y")).texts, Texts)
    maker.of(texts)
    assert maker.of(examples.take([1]).texts) == [2]
    assert len(maker.asked) == 1


TRAIN = Examples(("lamp on", "lamp off", "more"), ("on", "off", "on"))
VALID, TEST = Examples(("off now",), ("off",)), Examples(("secret words of the test",), ("on",))


def test_a_task_numbers_labels_by_their_place_among_its_own():
    task = Task("lamps", TRAIN, VALID, TEST)
    assert task.labels == ("off", "on")
    assert (task.labelled_train.texts, task.labelled_train.labels.tolist()) == (TRAIN.texts, [1, 0, 1])
    assert (task.labelled_valid.texts, task.labelled_valid.labels.tolist()) == (VALID.texts, [0])
    assert task.labelled_train.texts is task.train.texts
    assert len(Task("lamps", TRAIN).labelled_valid) == 0
    assert Task("lamps", TRAIN).labelled_valid.labels.dtype == np.int64


def test_a_task_without_a_source_is_a_source_of_its_own():
    assert Task("lamps", TRAIN).source == "lamps"
    assert Task("lamps", TRAIN, source="house").source == "house"


def test_a_bank_without_tests_is_otherwise_the_same():
    task = Task("lamps", TRAIN, VALID, TEST, source="house")
    bank = TaskBank((task, Task("bare", TRAIN)), {"bare": "target"})
    without = bank.without_tests()
    assert without.names == bank.names
    assert dict(without.roles) == {"bare": "target"}
    assert (without["lamps"].train, without["lamps"].valid, without["lamps"].source) == (TRAIN, VALID, "house")
    assert not any(len(each.test) for each in without)
    assert len(bank["lamps"].test) == 1, "the bank itself keeps them"


def test_tests_decide_nothing_of_a_bank_without_them():
    other = Examples(("another text",), ("off",))
    one, two = (TaskBank((Task("lamps", TRAIN, VALID, test),)) for test in (TEST, other))
    assert one.fingerprint != two.fingerprint
    assert one.without_tests().fingerprint == two.without_tests().fingerprint


def test_what_was_made_of_a_banks_texts_is_there_without_its_tests(maker):
    bank = TaskBank((Task("lamps", TRAIN, VALID, TEST),))
    maker.of(bank["lamps"].train.texts)
    assert maker.of(bank.without_tests()["lamps"].train.texts) == [7, 8, 4]
    assert len(maker.asked) == 1


def test_labels_are_shared_where_all_tasks_have_the_same():
    turned = Task("turned", Examples(("a", "b"), ("on", "off")))
    other = Task("other", Examples(("a", "b"), ("on", "dim")))
    assert TaskBank((Task("lamps", TRAIN), turned)).shared_labels == ("off", "on")
    assert TaskBank((Task("lamps", TRAIN), other)).shared_labels is None
    assert TaskBank(()).shared_labels is None


def test_material_of_some_tasks_keeps_the_order_of_the_bank_and_all_encoders():
    bank = TaskBank(tuple(Task(name, TRAIN) for name in "abc"))
    material = Material(bank, {WORDS.fingerprint: WORDS}).only({"c", "a"})
    assert material.bank.names == ("a", "c")
    assert material.encoders == {WORDS.fingerprint: WORDS}
