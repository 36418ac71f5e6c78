"""Splits of examples: the right shares of each label, and copies of a text never on both sides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from manymetrics.collect.bank.splits import normal_form, split_examples
from manymetrics.values import Examples


def make(**counts):
    labels = [label for label, count in counts.items() for _ in range(count)]
    return Examples(tuple(f"text {row}" for row in range(len(labels))), tuple(labels))


def test_each_label_is_split_by_itself_and_fills_train_first():
    parts = split_examples(make(a=100, b=50))
    assert [Counter(part.labels) for part in parts] == [{"a": 64, "b": 32}, {"a": 16, "b": 8}, {"a": 20, "b": 10}]
    for count, sizes in ((1, [1, 0, 0]), (2, [2, 0, 0]), (3, [2, 0, 1]), (4, [2, 1, 1])):
        assert [len(part) for part in split_examples(make(a=count))] == sizes


def test_copies_differ_in_case_spaces_width_and_punctuation_at_the_ends():
    for copy in ("yes", "yes ", "Yes", " YES!", "“yes”", "yes …", "ＹＥＳ", "¡yes!", "\tyes\n"):
        assert normal_form(copy) == "yes", copy
    for text, copy in (("Straße", "STRASSE"), ("caf\u00e9", "cafe\u0301"), ("a  b", "A\u00a0b"), ("don't", "DON'T.")):
        assert normal_form(text) == normal_form(copy)
    for text, other in (("yes", "yes yes"), ("cant", "can't"), ("?", "!"), ("5 €", "5"), ("😀", "😢"), ("a b", "ab")):
        assert normal_form(text) != normal_form(other)


@given(st.text())
def test_a_normal_form_is_empty_only_for_blank_texts(text):
    form = normal_form(text)
    assert bool(form) == bool(text.strip())
    assert form == " ".join(form.split())


def test_texts_with_the_most_copies_and_those_of_several_labels_are_in_train():
    for start in range(0, 180, 9):
        others = tuple(f"yes {number}" for number in range(start, start + 9))
        texts = ("yes",) * 30 + ("Yes",) * 30 + others + ("hm", "no", "hm ", "nope")
        train, valid, test = split_examples(Examples(texts, ("yes",) * 70 + ("no",) * 3))
        assert not {"yes", "hm"} & set(map(normal_form, (*valid.texts, *test.texts)))
        assert len(test) == 3  # a fifth of eleven distinct texts, and one of three
        assert set(train.labels) == {"yes", "no"}


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "A", "b", "b.", "c", "d", "e", "f", "g"]), st.sampled_from("xyz")))
)
def test_a_split_loses_nothing_shares_nothing_and_train_has_all_labels(rows):
    texts, labels = zip(*rows, ("z", "x"), strict=True)
    parts = split_examples(Examples(texts, labels))
    assert sorted(text for part in parts for text in part.texts) == sorted(texts)
    assert set(parts[0].labels) == set(labels)
    forms = [set(map(normal_form, part.texts)) for part in parts]
    assert sum(map(len, forms)) == len(set.union(*forms)), "a text is in two parts"
