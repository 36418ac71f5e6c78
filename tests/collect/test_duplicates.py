"""Texts that are alike: told apart only by what makes another text, and never on both sides of a split."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.collect import import_tasks, load_tasks, split_examples
from manymetrics.collect.duplicates import normal_form
from manymetrics.values import Examples


def test_case_spaces_width_and_punctuation_at_the_ends_make_no_other_text():
    for same in ("yes", "yes ", "Yes", " YES!", "“yes”", "yes …", "ＹＥＳ", "¡yes!", "\tyes\n"):
        assert normal_form(same) == "yes", same
    for one, two in (("Straße", "STRASSE"), ("caf\u00e9", "cafe\u0301"), ("a  b", "A\u00a0b"), ("don't", "DON'T.")):
        assert normal_form(one) == normal_form(two)
    for one, two in (("yes", "yes yes"), ("cant", "can't"), ("?", "!"), ("5 €", "5"), ("😀", "😢"), ("a b", "ab")):
        assert normal_form(one) != normal_form(two)


@given(st.text())
def test_a_normal_form_is_its_own_and_empty_only_for_blank_texts(text):
    form = normal_form(text)
    assert bool(form) == bool(text.strip())
    assert form == " ".join(form.split())


def sides_of(split):
    """The sides on which each text is found."""
    found = {}
    for side in ("train", "valid", "test"):
        for text in getattr(split, side).texts:
            found.setdefault(normal_form(text), set()).add(side)
    return found


def test_alike_texts_stay_on_one_side_of_a_split():
    texts = [form.format(number) for number in range(40) for form in ("text {}", "Text {}!", " text {} ")]
    examples = Examples(tuple(texts), tuple(f"label {number % 2}" for number in range(40) for _ in range(3)))
    for seed in range(20):
        split = split_examples(examples, rng=np.random.default_rng(seed))
        assert [text for text, sides in sides_of(split).items() if len(sides) > 1] == []
        assert [len(part) for part in (split.train, split.valid, split.test)] == [78, 18, 24]


def test_the_texts_found_most_often_and_those_of_several_labels_are_in_train():
    texts = ("yes",) * 30 + ("Yes",) * 30 + tuple(f"yes {number}" for number in range(9)) + ("hm", "no", "hm ", "nope")
    examples = Examples(texts, ("yes",) * 70 + ("no",) * 3)
    for seed in range(20):
        split = split_examples(examples, rng=np.random.default_rng(seed))
        sides = sides_of(split)
        assert sides["yes"] == sides["hm"] == {"train"}
        assert len(split.test) == 3  # a fifth of eleven distinct texts, and one of three
        assert set(split.train.labels) == {"yes", "no"}


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "A", "b", "b.", "c", "d", "e", "f", "g"]), st.sampled_from("xyz"))),
    seed=st.integers(0, 9),
)
def test_a_split_of_repeated_texts_loses_nothing_and_shares_nothing(rows, seed):
    rows = [*rows, ("z", "x")]
    examples = Examples(tuple(text for text, _ in rows), tuple(label for _, label in rows))
    split = split_examples(examples, rng=np.random.default_rng(seed))
    assert sorted([*split.train.texts, *split.valid.texts, *split.test.texts]) == sorted(examples.texts)
    assert set(split.train.labels) == set(examples.labels)
    assert all(len(sides) == 1 for sides in sides_of(split).values())


def test_an_import_tells_how_many_copies_there_were_and_keeps_them_together(tmp_path):
    path = tmp_path / "shop.jsonl"
    texts = [form.format(number) for number in range(30) for form in ("text {}", "TEXT {}.")]
    rows = [{"text": text, "label": f"label {row % 4 // 2}"} for row, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = import_tasks(path)
    assert dict(found.duplicates) == {"shop": 30}
    assert found.notes == (
        "Copies of other texts, but for case, spaces and punctuation at the ends: 30 of 60. "
        "They stay on one side of a split made here.",
    )
    assert all(len(sides) == 1 for sides in sides_of(found.bank["shop"]).values())


def test_copies_on_both_sides_of_a_given_split_are_told_task_by_task(tmp_path):
    path = tmp_path / "all.jsonl"
    rows = [("a", "train"), ("b", "train"), ("c", "train"), ("A!", "test"), ("new", "test")]
    lines = [
        {"text": text, "label": "xy"[number % 2], "split": split, "client": client}
        for client in ("Acme", "Bolt")
        for number, (text, split) in enumerate(rows[: None if client == "Acme" else 3])
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    notes = import_tasks(path, task_column="client").notes
    assert "but for case, spaces and punctuation at the ends: 1 of 8 (Acme 1). They stay" in notes[0]
    assert "in train too, as the source splits them: 1 (Acme 1). What is measured on them says little." in notes[1]


def test_a_rasa_file_of_a_bank_is_split_without_leaks(tmp_path):
    bullets = "".join(f"    - {form.format(number)}\n" for number in range(30) for form in ("say {}", "Say {}!"))
    content = "nlu:\n" + "".join(
        f"- intent: {name}\n  examples: |\n{bullets.replace('ay', name)}" for name in ("x", "y")
    )
    (tmp_path / "bot.yml").write_text(content)
    task = load_tasks(tmp_path)["bot"]
    assert len(task.test) == 24
    assert all(len(sides) == 1 for sides in sides_of(task).values())
