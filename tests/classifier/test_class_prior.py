"""How common labels are among the texts to come, where somebody knows it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.classifier.confidence import apply_class_prior
from manymetrics.errors import InputError
from manymetrics.model import load_classifier

NEW = ["lamp on", "any music", "a meeting", "nothing of the kind"]
LABELS = ("lamp", "meeting", "music")


def test_bayes_rule_by_hand():
    found = apply_class_prior(np.array([[0.5, 0.5], [0.8, 0.2]]), np.array([0.9, 0.1]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.72 / 0.74, 0.02 / 0.74]])
    back = apply_class_prior(found, np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    np.testing.assert_allclose(back, [[0.5, 0.5], [0.8, 0.2]])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=3))
def test_a_label_that_is_more_common_is_never_less_likely(model, shots, shares):
    plain = model.adapt(shots.texts, shots.labels, adaptive=False)
    told = model.adapt(shots.texts, shots.labels, adaptive=False, class_prior=dict(zip(LABELS, shares, strict=True)))
    most = LABELS.index(LABELS[int(np.argmax(shares))])
    assert (told.predict_proba(NEW)[:, most] >= plain.predict_proba(NEW)[:, most] - 1e-12).all()
    np.testing.assert_allclose(told.predict_proba(NEW).sum(axis=1), 1)


def test_a_uniform_prior_changes_nothing_and_counts_are_as_good_as_shares(model, shots):
    plain = model.adapt(shots.texts, shots.labels)
    assert plain.class_prior_ == pytest.approx(dict.fromkeys(LABELS, 1 / 3))
    even = model.adapt(shots.texts, shots.labels, class_prior=dict.fromkeys(LABELS, 7))
    np.testing.assert_allclose(even.predict_proba(NEW), plain.predict_proba(NEW))
    assert even.class_prior_ == plain.class_prior_


def test_where_tasks_share_their_labels_the_prior_of_the_bank_is_replaced(make_model, shots):
    model = make_model(shared_labels=LABELS)
    model.metrics[3].shared.prior[:] = np.array([0.8, 0.1, 0.1], dtype=np.float32)
    plain = model.adapt(shots.texts, shots.labels, adaptive=False)
    base = plain.class_prior_
    assert base["lamp"] > 1 / 3 > base["music"]
    same = plain.predict_proba(NEW)
    plain.set_params(class_prior=base)  # what is assumed already
    np.testing.assert_allclose(plain.predict_proba(NEW), same)
    plain.set_params(class_prior=dict.fromkeys(LABELS, 1))
    assert (plain.predict_proba(NEW)[:, 0] < same[:, 0]).all()


def test_it_is_live_and_saved(model, shots, tmp_path):
    classifier = model.adapt(shots.texts, shots.labels)
    before = classifier.predict_proba(NEW)
    classifier.set_params(class_prior={"lamp": 8, "meeting": 1, "music": 1})
    after = classifier.predict_proba(NEW)
    assert (after[:, 0] > before[:, 0]).all()
    assert classifier.explain(NEW[0]).probability == pytest.approx(after[0].max())
    classifier.save(tmp_path / "saved")
    again = load_classifier(tmp_path / "saved", model)
    assert again.class_prior == {"lamp": 8, "meeting": 1, "music": 1}
    assert (again.predict_proba(NEW) == after).all()


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ({"lamp": 1, "meeting": 1}, "The label 'music' is in the examples and not in class_prior"),
        ({**dict.fromkeys(LABELS, 1), "door": 1}, "The label 'door' is in class_prior and not in the examples"),
        ([0.5, 0.3, 0.2], "Give a number above 0 for each label"),
        ({}, "The label 'lamp' is in the examples and not in class_prior"),
        ({"lamp": 0, "meeting": 1, "music": 1}, "Give a number above 0 for each label"),
        ({"lamp": float("nan"), "meeting": 1, "music": 1}, "Give a number above 0 for each label"),
        ({"lamp": "much", "meeting": 1, "music": 1}, "Give a number above 0 for each label"),
    ],
)
def test_a_prior_that_cannot_be_is_refused(model, shots, tmp_path, prior, said):
    with pytest.raises(InputError, match=said):
        model.adapt(shots.texts, shots.labels, class_prior=prior)
    classifier = model.adapt(shots.texts, shots.labels).set_params(class_prior=prior)
    with pytest.raises(InputError, match=said):
        classifier.predict(NEW)
    with pytest.raises(InputError, match=said):
        classifier.save(tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_labels_that_come_and_go_ask_for_a_new_one_and_leave_the_old_classifier(model, shots):
    told = model.adapt(shots.texts, shots.labels, class_prior=dict.fromkeys(LABELS, 1))
    before = told.predict_proba(NEW)
    for change in (lambda: told.add_examples(["ring"], ["door"]), lambda: told.forget("lamp")):
        with pytest.raises(InputError, match="Set class_prior anew"):
            change()
        assert (told.predict_proba(NEW) == before).all()
