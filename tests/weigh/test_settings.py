import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import DataError
from manymetrics.weigh import MixSettings, fit_mix
from manymetrics.weigh.mix import fit_posterior

KINDS = ("learned", "learned", "frozen", "lexical")


@given(st.floats(0.01, 0.99), st.lists(st.sampled_from(["learned", "frozen", "lexical"]), min_size=1, max_size=9))
def test_a_prior_sums_to_one_and_treats_a_kind_alike(share, kinds):
    prior = MixSettings({"learned": share, "frozen": 1 - share}).prior(kinds, [1] * len(kinds))
    assert (prior > 0).all()
    assert prior.sum() == pytest.approx(1)
    for kind in set(kinds):
        assert len({prior[place] for place, other in enumerate(kinds) if other == kind}) == 1


def test_the_metrics_of_a_kind_share_its_part():
    shares = {"learned": 0.6, "frozen": 0.3, "lexical": 0.1}
    np.testing.assert_allclose(MixSettings(shares).prior(KINDS, (7, 7, 1, 1)), [0.3, 0.3, 0.3, 0.1])
    np.testing.assert_allclose(MixSettings(shares).prior(["learned"] * 4, [1] * 4), [0.25] * 4)
    np.testing.assert_allclose(MixSettings().prior(KINDS, (1, 1, 1, 1)), [1 / 6, 1 / 6, 1 / 3, 1 / 3])


def test_within_its_kind_a_metric_of_more_tasks_counts_for_more():
    shares = {"learned": 0.6, "frozen": 0.3, "lexical": 0.1}
    np.testing.assert_allclose(MixSettings(shares).prior(KINDS, (5, 1, 1, 1)), [0.5, 0.1, 0.3, 0.1])


GROUPS = ("learned", "learned", "words", "letters")


@pytest.fixture
def shots():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(3), (6, 4)), rng.integers(3, size=6)


def fit(settings, shots, *, clusters=None, names=False):
    return settings.fit(*shots, prior=np.full(4, 0.25), clusters=clusters, groups=GROUPS, names=names)


def test_members_that_speak_for_clusters_are_fitted_by_a_posterior(shots):
    clusters = np.arange(4)
    posterior = fit(MixSettings(prior_shots=2.0, likelihood_temperature=3.0), shots, clusters=clusters)
    expected = fit_posterior(*shots, prior=np.full(4, 0.25), temperature=3.0, clusters=clusters)
    np.testing.assert_array_equal(posterior.weights, expected.weights)
    assert posterior.groups is None


def test_elsewhere_the_members_of_a_group_are_mixed_and_groups_count_by_their_exponents(shots):
    """Of 6 examples of 3 labels, each label has 2."""
    exponents = {"learned": (0.5, 1.0, 0.0), "words": (-1.0, 0.0, 1.0), "letters": (0.0, 0.0, 0.0)}
    mixed = fit(MixSettings(exponents_without_names=exponents, prior_shots=2.0), shots)
    powers = np.array([np.exp(0.5) * 2, np.exp(-1) * 0.3, 1.0])
    assert mixed.exponent_sum == pytest.approx(powers.sum())
    assert mixed.groups.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(mixed.weights[2:], powers[1:] / powers.sum())
    learned, labels = shots[0][:, :2], shots[1]
    within = fit_mix(learned, labels, prior=np.array([0.5, 0.5]), prior_shots=2.0).weights
    np.testing.assert_allclose(mixed.weights[:2], within * powers[0] / powers.sum(), atol=1e-6)


def test_exponents_with_names_and_without_are_kept_apart(shots):
    with_names = {"learned": (0.0, 0.0, 0.0), "words": (1.0, 0.0, 0.0), "letters": (0.0, 0.0, 0.0)}
    settings = MixSettings(exponents=with_names)
    assert fit(settings, shots, names=True).exponent_sum == pytest.approx(2 + np.e)
    assert fit(settings, shots).exponent_sum == pytest.approx(1)  # of these nothing is known: a geometric mean
    np.testing.assert_allclose(fit(settings, shots).weights[2:], [1 / 3, 1 / 3])


def test_a_group_that_nothing_is_known_of_counts_for_next_to_nothing(shots):
    known = {"learned": (0.0, 0.0, 0.0), "words": (0.0, 0.0, 0.0)}
    weights = fit(MixSettings(exponents_without_names=known), shots).weights
    assert 0 < weights[3] < 1e-5
    assert weights[2] == pytest.approx(0.5, abs=1e-5)


def test_settings_that_cannot_be_used_are_refused():
    for broken in (
        {"shares": {"learned": -0.1}},
        {"shares": {"learned": np.nan}},
        {"shares": {"learned": 1e308}},
        {"exponents": {"words": (np.nan, 0.0, 0.0)}},
        {"exponents_without_names": {"words": (0.0, 0.0, 1e7)}},
        {"prior_shots": -1.0},
        {"prior_shots": np.inf},
        {"prior_shots": 1e308},
        {"likelihood_temperature": 0.0},
        {"likelihood_temperature": 1e-300},
        {"likelihood_temperature": np.nan},
        {"threshold": np.nan},
        {"threshold": 1e308},
    ):
        with pytest.raises(DataError, match="The settings of the mix hold numbers that cannot be used"):
            MixSettings(**broken)
    assert MixSettings(threshold=-np.inf).threshold == -np.inf
