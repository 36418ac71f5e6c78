import pickle

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


def bank(*names, roles=None):
    return TaskBank(tuple(Task(name, YES_NO) for name in names), roles or {})


def test_examples_need_one_label_for_each_text():
    with pytest.raises(DataError, match=r"Found 2 texts and 1 labels\. Give one label for each text\."):
        Examples(("a", "b"), ("x",))


def test_examples_are_taken_in_the_order_asked_for():
    assert YES_NO.take([1, 0, 1]) == Examples(("no thanks", "yes please", "no thanks"), ("no", "yes", "no"))


def test_examples_are_joined_in_order():
    more = Examples(("maybe",), ("yes",))
    joined = Examples.join([more, YES_NO])
    assert joined == Examples(("maybe", "yes please", "no thanks"), ("yes", "yes", "no"))
    assert Examples.join([]) == Examples()


def test_labels_are_numbered_by_their_place_among_the_classes():
    assert YES_NO.classes == ("no", "yes")
    assert YES_NO.numbers.tolist() == [1, 0]
    three = YES_NO.with_classes(("maybe", "no", "yes"))
    assert three.numbers.tolist() == [2, 1]
    assert three.take([1]).classes == Examples.join([three, three.take([0])]).classes == ("maybe", "no", "yes")
    assert Examples.join([YES_NO, Examples(("well",), ("maybe",))]).classes == ("maybe", "no", "yes")
    assert Examples().numbers.dtype == np.int64
    with pytest.raises(DataError, match=r"Found the label 'yes', which is not among the classes \('no',\)\."):
        YES_NO.with_classes(("no",))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a text", r"Found one text where a list of texts was expected\. Put it in a list: \[text\]\."),
        (["a", None], r"Found None of type NoneType in row 1 where a text was expected\. Replace missing texts"),
        (7, r"Found 7 where a list of texts was expected\. Give a list\."),
    ],
)
def test_texts_are_a_list_of_strings(texts, message):
    with pytest.raises(DataError, match=message):
        as_texts(texts)
    assert as_texts(np.array(["a", "b"])) == as_texts(iter("ab")) == ("a", "b")


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
    ("similar", "observed", "text"),
    [
        ([[1, 1], [0, 1]], [[1, 1], [1, 1]], "must be symmetric: similarity has no direction"),
        ([[1, 1], [1, 1]], [[1, 0], [0, 1]], "similar is True where observed is False"),
        ([[0, 0], [0, 1]], [[1, 1], [1, 1]], "must have each task similar to itself"),
    ],
)
def test_pairs_that_contradict_themselves_are_refused(similar, observed, text):
    with pytest.raises(DataError, match=text):
        ObservedPairs(("a", "b"), np.array(similar), np.array(observed))


def test_the_share_of_observed_pairs_leaves_out_the_diagonal():
    observed = np.eye(3, dtype=bool)
    observed[0, 1] = observed[1, 0] = True
    assert ObservedPairs(tuple("abc"), np.eye(3, dtype=bool), observed).share == pytest.approx(1 / 3)
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


@given(st.text(), st.integers(0, 2**63 - 1))
def test_a_unit_draws_the_same_randomness_wherever_it_runs(name, seed):
    left, right = (Job(name, {"b": 1, "a": "x"}).rng(seed).random(3) for _ in range(2))
    assert (left == right).all()


def test_units_that_differ_in_content_draw_differently():
    jobs = Job("a", {}), Job("a", {"k": 1}), Job("a", {"tasks": {"x": "hash"}})
    drawn = {job.rng(seed).random() for job in jobs for seed in (0, 1)}
    assert len(drawn) == 6


def test_names_do_not_change_what_is_drawn():
    first, second = Job("a", {"tasks": {"x": "1", "y": "2"}}), Job("b", {"tasks": {"z": "2", "w": "1"}})
    assert first.rng(0).random() == second.rng(0).random()


TRAIN = Examples(("lamp on", "lamp off", "more"), ("on", "off", "on"))
VALID, TEST = Examples(("off now",), ("off",)), Examples(("secret words of the test",), ("on",))


def test_the_classes_of_a_task_are_the_labels_of_its_train_examples():
    task = Task("lamps", TRAIN, VALID, TEST)
    assert task.labels == task.train.classes == task.valid.classes == task.test.classes == ("off", "on")
    assert (task.train.numbers.tolist(), task.valid.numbers.tolist()) == ([1, 0, 1], [0])
    assert Task("lamps", TRAIN.with_classes(("dim", "off", "on"))).labels == ("off", "on")


def test_a_text_is_new_in_the_first_task_that_has_it():
    other = Task("other", Examples(("lamp on", "more light", "more light"), ("more", "on", "on")))
    assert TaskBank((Task("lamps", TRAIN, VALID), other)).new_texts == {
        "lamps": ("lamp on", "lamp off", "more", "off now", "off", "on"),
        "other": ("more light",),
    }


def test_a_task_without_a_source_is_a_source_of_its_own():
    assert Task("lamps", TRAIN).source == "lamps"
    assert Task("lamps", TRAIN, source="house").source == "house"


def test_a_bank_without_tests_is_otherwise_the_same():
    task = Task("lamps", TRAIN, VALID, TEST, source="house")
    bank = TaskBank((task, Task("bare", TRAIN)), {"bare": "target"})
    without = bank.without_tests()
    assert without.names == bank.names
    assert dict(without.roles) == {"bare": "target"}
    assert (without["lamps"].train, without["lamps"].valid, without["lamps"].source) == (
        task.train,
        task.valid,
        "house",
    )
    assert not any(len(each.test) for each in without)
    assert len(bank["lamps"].test) == 1, "the bank itself keeps them"


def test_tests_decide_nothing_of_a_bank_without_them():
    other = Examples(("another text",), ("off",))
    one, two = (TaskBank((Task("lamps", TRAIN, VALID, test),)) for test in (TEST, other))
    assert one.fingerprint != two.fingerprint
    assert one.without_tests().fingerprint == two.without_tests().fingerprint


def test_labels_are_shared_where_all_tasks_have_the_same():
    turned = Task("turned", Examples(("a", "b"), ("on", "off")))
    other = Task("other", Examples(("a", "b"), ("on", "dim")))
    assert TaskBank((Task("lamps", TRAIN), turned)).shared_labels == ("off", "on")
    assert TaskBank((Task("lamps", TRAIN), other)).shared_labels is None
    assert TaskBank(()).shared_labels is None


def test_shared_data_of_some_tasks_has_the_order_of_the_bank_and_all_encoders():
    bank = TaskBank(tuple(Task(name, TRAIN) for name in "abc"))
    shared_data = SharedData(bank, {"hash": "an encoder"}).only({"c", "a"})
    assert shared_data.bank.names == ("a", "c")
    assert shared_data.base == "an encoder"
