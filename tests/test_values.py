import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import (
    Clusters,
    Examples,
    Mix,
    ObservedPairs,
    Similarity,
    Task,
    TaskBank,
    TransferMatrix,
    Unit,
)
from manymetrics.values.label_names import label_words


class Lengths(list):
    """What an encoder could remember of texts."""

    def take(self, rows):
        return Lengths(self[row] for row in rows)

    @classmethod
    def join(cls, parts):
        return cls(length for part in parts for length in part)


YES_NO = Examples(("yes please", "no thanks"), ("yes", "no"))


def bank(*names, roles=None):
    return TaskBank(tuple(Task(name, YES_NO) for name in names), roles or {})


def test_examples_need_one_label_for_each_text():
    with pytest.raises(DataError, match=r"Found 2 texts and 1 labels\. Give one label for each text\."):
        Examples(("a", "b"), ("x",))


def test_examples_are_taken_in_the_order_asked_for():
    assert YES_NO.take([1, 0, 1]) == Examples(("no thanks", "yes please", "no thanks"), ("no", "yes", "no"))


def test_examples_are_joined_in_order_with_what_was_made_of_their_texts():
    more = Examples(("maybe",), ("yes",))
    made = []
    more.texts.put("lengths", Lengths([5]))
    YES_NO.texts.put("lengths", Lengths([10, 9]))
    joined = Examples.join([more, YES_NO])
    assert joined == Examples(("maybe", "yes please", "no thanks"), ("yes", "yes", "no"))
    assert joined.texts.remember("lengths", made.append) == [5, 10, 9]
    assert made == []
    assert Examples.join([]) == Examples()


def test_a_labels_name_is_read_as_words():
    said = {
        "opening_hours": "opening hours",
        "openingHours": "opening hours",
        "OpeningHours": "opening hours",
        "FAQOrders": "faq orders",
        "faq/ask_openingHours2": "faq ask opening hours 2",
        "smalltalk.greetings.hello": "smalltalk greetings hello",
        "card-not-working": "card not working",
        "2nd_line": "2 nd line",
        "step2of3": "step 2 of 3",
        "  much   room ": "much room",
        "already in words": "already in words",
        "E404": "e404",
        "E_404": "e 404",
        "17": "17",
        "注文状況": "注文状況",
        "__init__": "init",
        "???": "???",
        "_": "_",
        "": "",
    }
    assert {label: label_words(label) for label in said} == said


@given(st.text(st.characters(max_codepoint=127), max_size=30))
def test_a_name_keeps_its_letters_and_digits_in_order(label):
    kept = "".join(sign for sign in label if sign.isalnum()).lower()
    assert label_words(label).replace(" ", "") == kept if kept else label_words(label) == label


def test_a_task_says_what_its_labels_are_called_in_their_order():
    task = Task("t", Examples(("a", "b", "c"), ("orderStatus", "cancel_order", "FAQ")))
    assert task.labels == ("FAQ", "cancel_order", "orderStatus")
    assert task.label_names == ("faq", "cancel order", "order status")


def test_a_task_knows_its_labels_sorted():
    assert Task("t", YES_NO).labels == ("no", "yes")


def test_a_task_without_a_name_is_refused():
    with pytest.raises(DataError, match="a task without a name"):
        Task("", YES_NO)


def test_a_task_with_one_label_is_refused_by_name():
    with pytest.raises(
        NotEnoughExamples, match=r"Task 'one' has only the label 'x' in train\. A task needs at least two"
    ):
        Task("one", Examples(("a", "b"), ("x", "x")))


def test_a_task_without_examples_is_refused():
    with pytest.raises(NotEnoughExamples, match="Task 'none' has no examples in train"):
        Task("none", Examples())


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_label_unseen_in_training_is_refused(split):
    with pytest.raises(DataError, match=f"Task 't' has the label 'maybe' in {split} but not in train"):
        Task("t", YES_NO, **{split: Examples(("well",), ("maybe",))})


def test_equal_content_has_an_equal_fingerprint_and_any_change_another():
    same, other = Task("t", YES_NO), Task("t", YES_NO, test=YES_NO)
    assert same.fingerprint == Task("t", Examples(*map(tuple, (YES_NO.texts, YES_NO.labels)))).fingerprint
    assert len({same.fingerprint, other.fingerprint, Task("t", YES_NO, valid=YES_NO).fingerprint}) == 3


def test_texts_do_not_run_together_in_a_fingerprint():
    left = Task("t", Examples(("ab", "c"), ("x", "y")))
    right = Task("t", Examples(("a", "bc"), ("x", "y")))
    assert left.fingerprint != right.fingerprint


def test_the_order_of_the_tasks_does_not_change_the_fingerprint_of_the_bank():
    assert bank("a", "b").fingerprint == bank("b", "a").fingerprint


def test_a_bank_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(bank("a", "b", roles={"b": "target"})))  # noqa: S301 - as a pool of workers does
    assert sent.names == ("a", "b")
    assert sent.role("b") == "target"


def test_two_tasks_of_one_name_are_refused():
    with pytest.raises(DataError, match=r"Two tasks are named 'a'\. Give every task a name of its own\."):
        bank("a", "b", "a")


def test_a_role_nobody_knows_is_refused():
    with pytest.raises(DataError, match=r"Task 'a' has the role 'boss'\. Use one of meta-train, target\."):
        bank("a", roles={"a": "boss"})


def test_a_task_is_found_by_its_name_or_missed_with_a_hint():
    assert bank("a", "b")["b"].name == "b"
    with pytest.raises(DataError, match=r"There is no task 'c' in this bank of 2 tasks\. See bank\.names\."):
        bank("a", "b")["c"]


def test_roles_decide_what_is_split_off():
    past, new = bank("a", "b", "c", roles={"b": "target", "c": "meta-train"}).split_off()
    assert (past.names, new.names) == (("a", "c"), ("b",))
    assert new.role("b") == "target"


def test_a_prefix_splits_off_whole_parts_of_names_only():
    past, new = bank("books.t2", "books-x", "bookshop", "dvd").split_off("books")
    assert (past.names, new.names) == (("bookshop", "dvd"), ("books.t2", "books-x"))


def test_splitting_off_nothing_says_what_to_do():
    with pytest.raises(DataError, match=r"No task of this bank has the role 'target'.*manifest\.json"):
        bank("a").split_off()
    with pytest.raises(DataError, match="No task is named 'zoo' or begins with it"):
        bank("a").split_off("zoo")


def test_a_matrix_of_the_wrong_shape_says_which_was_expected():
    with pytest.raises(
        DataError, match=r"TransferMatrix.scores has shape \(2, 3\), but 2 tasks are named \('a' … 'b'\)"
    ):
        TransferMatrix(("a", "b"), np.zeros((2, 3)))


def test_infinite_transfer_scores_are_refused():
    with pytest.raises(DataError, match="Mark what was not measured with NaN"):
        TransferMatrix(("a",), np.array([[np.inf]]))


def test_values_keep_read_only_copies():
    scores = np.zeros((2, 2))
    kept = TransferMatrix(("a", "b"), scores)
    scores[0, 0] = 1
    assert kept.scores[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        kept.scores[0, 0] = 1


@pytest.mark.parametrize(
    ("alike", "known", "text"),
    [
        ([[1, 1], [0, 1]], [[1, 1], [1, 1]], "must be symmetric: likeness has no direction"),
        ([[1, 1], [1, 1]], [[1, 0], [0, 1]], "alike is True where known is False"),
        ([[0, 0], [0, 1]], [[1, 1], [1, 1]], "must know every task as like itself"),
    ],
)
def test_pairs_that_contradict_themselves_are_refused(alike, known, text):
    with pytest.raises(DataError, match=text):
        ObservedPairs(("a", "b"), np.array(alike), np.array(known))


def test_the_share_of_known_pairs_leaves_out_the_diagonal():
    known = np.eye(3, dtype=bool)
    known[0, 1] = known[1, 0] = True
    assert ObservedPairs(tuple("abc"), np.eye(3, dtype=bool), known).share == pytest.approx(1 / 3)
    assert ObservedPairs(("a",), np.ones((1, 1)), np.ones((1, 1))).share == 1.0


def test_a_similarity_is_symmetric_and_finite():
    zeros = np.zeros((2, 2))
    with pytest.raises(DataError, match=r"Similarity\.low_rank must be symmetric"):
        Similarity(("a", "b"), np.array([[0, 1], [0, 0]]), zeros, 1.0, 1, 0.0)
    with pytest.raises(DataError, match=r"Similarity\.errors holds values that are not finite"):
        Similarity(("a", "b"), zeros, np.full((2, 2), np.nan), 1.0, 1, 0.0)


def test_clusters_give_the_groups_in_order():
    clusters = Clusters(tuple("abcd"), np.array([0, 1, 0, 2]))
    assert len(clusters) == 3
    assert list(clusters) == [("a", "c"), ("b",), ("d",)]


@pytest.mark.parametrize(
    ("labels", "text"), [([0, 2], "Number the clusters without gaps"), ([0], r"shape \(1,\), but 2 tasks are named")]
)
def test_clusters_with_gaps_or_of_another_length_are_refused(labels, text):
    with pytest.raises(DataError, match=text):
        Clusters(("a", "b"), np.array(labels))


@pytest.mark.parametrize("weights", [[], [np.nan], [[1.0]], [np.inf, 0]])
def test_a_mix_has_finite_weights(weights):
    with pytest.raises(DataError, match=r"Mix\.weights must be a list of finite numbers"):
        Mix(np.array(weights), 1, 0.0)


@given(st.text(), st.integers(0, 2**63 - 1))
def test_a_unit_draws_the_same_randomness_wherever_it_runs(name, seed):
    left, right = (Unit(name, {"b": 1, "a": "x"}).rng(seed).random(3) for _ in range(2))
    assert (left == right).all()


def test_units_that_differ_draw_differently():
    drawn = {unit.rng(seed).random() for unit in (Unit("a", {}), Unit("b", {}), Unit("a", {"k": 1})) for seed in (0, 1)}
    assert len(drawn) == 6
