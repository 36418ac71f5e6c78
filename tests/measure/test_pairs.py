"""Which pairs of tasks are measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.measure import choose_pairs, pairs_needed, pairs_to_measure
from manymetrics.measure.transfer import NEEDED


def called(n):
    return [f"task-{number}" for number in range(n)]


@given(st.integers(2, 20), st.integers(0, 250), st.integers(0, 99))
def test_as_many_pairs_as_asked_for_are_chosen_in_both_directions(n, pairs, seed):
    chosen = choose_pairs(called(n), pairs, seed)
    assert (chosen == chosen.T).all()
    assert not chosen.diagonal().any()
    assert chosen.sum() == 2 * min(pairs, n * (n - 1) // 2)


def test_a_small_bank_is_measured_completely_and_a_large_one_in_part():
    assert choose_pairs(called(500), None, 0).sum() == 500 * 499
    assert choose_pairs(called(1000), None, 0).sum() == 2 * int(1000 * np.log(1000) ** 2 / 2)


def test_of_a_large_bank_pairs_are_measured_until_enough_are_similar():
    n = 1000
    first, every = pairs_to_measure(n), n * (n - 1) // 2
    needed = NEEDED * np.log(n)
    assert pairs_needed(n, needed) == first
    assert pairs_needed(n, 2 * needed) == first, "never fewer than were measured"
    assert pairs_needed(n, needed / 4) == pytest.approx(4 * first, rel=1e-3)
    assert pairs_needed(n, 1e-9) == every
    assert pairs_needed(n, 0.0) == first, "where nothing is similar, more of the same does not help"
    assert pairs_needed(200, 0.01) == 200 * 199 // 2


def test_pairs_are_drawn_evenly_from_all_tasks():
    share = choose_pairs(called(1000), None, 0).mean(axis=0)
    assert share.min() > 0.5 * share.mean()
    assert share.max() < 1.6 * share.mean()
    assert (choose_pairs(called(50), 300, 0) != choose_pairs(called(50), 300, 1)).any()


@given(st.integers(3, 20), st.integers(0, 100), st.integers(0, 100), st.integers(0, 19))
def test_more_pairs_are_the_same_and_others_and_a_task_that_joins_leaves_the_others_theirs(n, few, more, joins):
    few, more = sorted((few, more))
    names, joins = called(n), joins % n
    chosen = choose_pairs(names, few, 0)
    assert not (chosen & ~choose_pairs(names, more, 0)).any()
    without = choose_pairs([name for name in names if name != names[joins]], few, 0)
    among_others = np.delete(np.delete(chosen, joins, axis=0), joins, axis=1)
    assert not (among_others & ~without).any()
