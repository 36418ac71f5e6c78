"""The values that stages hand to one another: what they hold, and what they refuse when they are made."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import (
    Clusters,
    Examples,
    Job,
    ObservedPairs,
    SharedData,
    Similarity,
    Task,
    TaskBank,
    TransferMatrix,
    as_texts,
    label_words,
)

YES_NO = Examples(("yes please", "no thanks"), ("yes", "no"))
MAYBE = Examples(("well",), ("maybe",))
TRAIN = Examples(("lamp on", "lamp off", "more"), ("on", "off", "on"))
VALID, TEST = Examples(("off now",), ("off",)), Examples(("secret words of the test",), ("on",))
LAMPS = Task("lamps", TRAIN, VALID, TEST, source="house")
ZEROS, ONES, EYE = np.zeros((2, 2)), np.ones((2, 2), dtype=bool), np.eye(2, dtype=bool)


def bank(*names, roles=None):
    return TaskBank(tuple(Task(name, YES_NO) for name in names), roles or {})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Examples(("a", "b"), ("x",)), DataError, r"Found 2 texts and 1 labels\. Give one label for each"),
        (lambda: Examples(("a",), ("yes",), ("no",)), DataError, r"'yes', which is not among the classes \('no',\)\."),
        (lambda: as_texts("a text"), DataError, r"Found one text where a list of texts was expected\. Put it"),
        (lambda: as_texts(["a", None]), DataError, r"Found None of type NoneType in row 1 where a text was expected\."),
        (lambda: as_texts(7), DataError, r"Found 7 where a list of texts was expected\. Give a list\."),
        (lambda: Task("", YES_NO), DataError, "a task without a name"),
        (lambda: Task("one", Examples(("a", "b"), ("x", "x"))), NotEnoughExamples,
         r"Task 'one' has only the label 'x' in train\. A task needs at least two"),
        (lambda: Task("none", Examples()), NotEnoughExamples, "Task 'none' has no examples in train"),
        (lambda: Task("t", YES_NO, MAYBE), DataError, "Task 't' has the label 'maybe' in valid but not in train"),
        (lambda: Task("t", YES_NO, test=MAYBE), DataError, "Task 't' has the label 'maybe' in test but not in train"),
        (lambda: bank("a", "b", "a"), DataError, r"Two tasks are named 'a'\. Give every task a name of its own\."),
        (lambda: bank("a", roles={"a": "boss"}), DataError, r"'a' has the role 'boss'\. Use one of meta-train, target"),
        (lambda: bank("a", "b")["c"], DataError, r"There is no task 'c' in this bank of 2 tasks\. See bank\.names\."),
        (lambda: bank("a").split_off(), DataError, r"No task of this bank has the role 'target'.*manifest\.json"),
        (lambda: bank("a").split_off("zoo"), DataError, "No task is named 'zoo' or begins with it"),
        (lambda: TransferMatrix(("a", "b"), np.zeros((2, 3))), DataError,
         r"TransferMatrix.scores has shape \(2, 3\), but 2 tasks are named \('a' … 'b'\)"),
        (lambda: ObservedPairs(("a", "b"), np.array([[1, 1], [0, 1]]), ONES), DataError, "must be symmetric"),
        (lambda: ObservedPairs(("a", "b"), ONES, EYE), DataError, "similar is True where observed is False"),
        (lambda: ObservedPairs(("a", "b"), np.diag([0, 1]), ONES), DataError, "must have each task similar to itself"),
        (lambda: Similarity(("a", "b"), np.array([[0, 1], [0, 0]]), ZEROS, 1.0, 1, 0.0), DataError,
         r"Similarity\.low_rank must be symmetric"),
        (lambda: Clusters(("a", "b"), np.array([0, 2])), DataError, "Number the clusters without gaps"),
        (lambda: Clusters(("a", "b"), np.array([0])), DataError, r"shape \(1,\), but 2 tasks are named"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_when_it_is_made(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_texts_may_be_any_list_and_examples_are_taken_and_joined_in_the_order_asked_for():
    assert as_texts(np.array(["a", "b"])) == as_texts(iter("ab")) == ("a", "b")
    assert YES_NO.take([1, 0, 1]) == Examples(("no thanks", "yes please", "no thanks"), ("no", "yes", "no"))
    more = Examples(("maybe",), ("yes",))
    joined = Examples(("maybe", "yes please", "no thanks"), ("yes", "yes", "no"))
    assert Examples.join([more, YES_NO]) == joined
    assert Examples.join([]) == Examples()


def test_labels_are_numbered_by_their_place_among_the_classes():
    assert YES_NO.classes == ("no", "yes")
    assert YES_NO.numbers.tolist() == [1, 0]
    three = replace(YES_NO, classes=("maybe", "no", "yes"))
    assert three.numbers.tolist() == [2, 1]
    assert three.take([1]).classes == Examples.join([three, three.take([0])]).classes == ("maybe", "no", "yes")
    assert Examples.join([YES_NO, MAYBE]).classes == ("maybe", "no", "yes")
    assert Examples().numbers.dtype == np.int64


def test_a_labels_name_is_read_as_words():
    said = {
        "opening_hours": "opening hours",
        "openingHours": "opening hours",
        "FAQOrders": "faq orders",
        "faq/ask_openingHours2": "faq ask opening hours 2",
        "card-not-working": "card not working",
        "2nd_line": "2 nd line",
        "step2of3": "step 2 of 3",
        "  much   room ": "much room",
        "E404": "e404",
        "注文状況": "注文状況",
        "__init__": "init",
        "???": "???",
        "": "",
    }
    assert {label: label_words(label) for label in said} == said
    task = Task("t", Examples(("a", "b", "c"), ("orderStatus", "cancel_order", "FAQ")))
    assert task.labels == ("FAQ", "cancel_order", "orderStatus")
    assert task.label_names == ("faq", "cancel order", "order status")


@given(st.text(st.characters(max_codepoint=127), max_size=30))
def test_a_name_keeps_its_letters_and_digits_in_order(label):
    kept = "".join(sign for sign in label if sign.isalnum()).lower()
    assert label_words(label).replace(" ", "") == kept if kept else label_words(label) == label


def test_the_classes_of_a_task_are_the_sorted_labels_of_its_train_examples():
    assert LAMPS.labels == LAMPS.train.classes == LAMPS.valid.classes == LAMPS.test.classes == ("off", "on")
    assert (LAMPS.train.numbers.tolist(), LAMPS.valid.numbers.tolist()) == ([1, 0, 1], [0])
    assert Task("lamps", replace(TRAIN, classes=("dim", "off", "on"))).labels == ("off", "on")
    assert (Task("lamps", TRAIN).source, LAMPS.source) == ("lamps", "house")


def test_equal_content_has_an_equal_fingerprint_and_any_change_another():
    same, other = Task("t", YES_NO), Task("t", YES_NO, test=YES_NO)
    assert same.fingerprint == Task("t", Examples(*map(tuple, (YES_NO.texts, YES_NO.labels)))).fingerprint
    assert len({same.fingerprint, other.fingerprint, Task("t", YES_NO, valid=YES_NO).fingerprint}) == 3
    left, right = (Task("t", Examples(texts, ("x", "y"))) for texts in (("ab", "c"), ("a", "bc")))
    assert left.fingerprint != right.fingerprint, "texts do not run together"
    assert bank("a", "b").fingerprint == bank("b", "a").fingerprint


def test_the_content_of_a_task_does_not_depend_on_its_order_or_name():
    turned = Task("other", TRAIN.take([2, 0, 1]), VALID)
    assert turned.content == LAMPS.content
    assert turned.train.in_order() == LAMPS.train.in_order()
    assert LAMPS.train.in_order().texts == ("lamp off", "lamp on", "more")


def test_a_bank_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(bank("a", "b", roles={"b": "target"})))  # noqa: S301 - as a pool of workers does
    assert sent.names == ("a", "b")
    assert (sent["b"].name, sent.role("b")) == ("b", "target")


def test_targets_are_split_off_by_their_roles_or_by_whole_parts_of_their_names():
    past, new = bank("a", "b", "c", roles={"b": "target", "c": "meta-train"}).split_off()
    assert (past.names, new.names, new.role("b")) == (("a", "c"), ("b",), "target")
    past, new = bank("books.t2", "books-x", "bookshop", "dvd", "cd").split_off("cd", "books")
    assert (past.names, new.names) == (("bookshop", "dvd"), ("cd", "books.t2", "books-x"))


def test_tests_decide_nothing_of_a_bank_without_them():
    bank = TaskBank((LAMPS, Task("bare", TRAIN)), {"bare": "target"})
    without = bank.without_tests()
    assert (without.names, dict(without.roles)) == (bank.names, {"bare": "target"})
    task = without["lamps"]
    assert (task.train, task.valid, task.source) == (LAMPS.train, LAMPS.valid, "house")
    assert not any(len(each.test) for each in without)
    assert len(bank["lamps"].test) == 1, "the bank itself keeps them"
    one, two = (TaskBank((Task("lamps", TRAIN, VALID, test),)) for test in (TEST, VALID))
    assert one.fingerprint != two.fingerprint
    assert one.without_tests().fingerprint == two.without_tests().fingerprint


def test_labels_are_shared_where_all_tasks_have_the_same():
    turned, other = (Task("b", Examples(("a", "b"), labels)) for labels in (("on", "off"), ("on", "dim")))
    assert TaskBank((LAMPS, turned)).shared_labels == ("off", "on")
    assert TaskBank((LAMPS, other)).shared_labels is None
    assert TaskBank(()).shared_labels is None


def test_values_hold_read_only_copies_of_arrays():
    scores = np.zeros((2, 2))
    held = TransferMatrix(("a", "b"), scores)
    scores[0, 0] = 1
    assert held.scores[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        held.scores[0, 0] = 1


def test_the_share_of_observed_pairs_leaves_out_the_diagonal():
    observed = np.eye(3, dtype=bool)
    observed[0, 1] = observed[1, 0] = True
    assert ObservedPairs(tuple("abc"), np.eye(3, dtype=bool), observed).share == pytest.approx(1 / 3)
    assert ObservedPairs(("a",), np.ones((1, 1)), np.ones((1, 1))).share == 1.0


def test_clusters_give_the_groups_in_order():
    clusters = Clusters(tuple("abcd"), np.array([0, 1, 0, 2]))
    assert len(clusters) == 3
    assert list(clusters) == [("a", "c"), ("b",), ("d",)]


@given(st.text(), st.integers(0, 2**63 - 1))
def test_a_job_draws_the_same_randomness_wherever_it_runs(name, seed):
    left, right = (Job(name, {"b": 1, "a": "x"}).rng(seed).random(3) for _ in range(2))
    assert (left == right).all()


def test_what_a_job_draws_depends_on_its_content_and_not_on_names():
    jobs = Job("a", {}), Job("a", {"k": 1}), Job("a", {"tasks": {"x": "hash"}})
    assert len({job.rng(seed).random() for job in jobs for seed in (0, 1)}) == 6
    first, second = Job("a", {"tasks": {"x": "1", "y": "2"}}), Job("b", {"tasks": {"z": "2", "w": "1"}})
    assert first.rng(0).random() == second.rng(0).random()


def test_shared_data_of_some_tasks_has_the_order_of_the_bank_and_the_encoder():
    shared_data = SharedData(bank(*"abc"), "an encoder").only({"c", "a"})
    assert shared_data.bank.names == ("a", "c")
    assert shared_data.base == "an encoder"
