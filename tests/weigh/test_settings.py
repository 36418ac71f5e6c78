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


def test_members_that_speak_for_clusters_are_fitted_by_a_posterior_and_others_by_a_mix():
    rng = np.random.default_rng(0)
    shots, labels = rng.dirichlet(np.ones(3), (6, 4)), rng.integers(3, size=6)
    prior, clusters = np.full(4, 0.25), np.arange(4)
    settings = MixSettings(prior_shots=2.0, likelihood_temperature=3.0)
    mixed = settings.fit(shots, labels, prior=prior, clusters=None)
    np.testing.assert_array_equal(mixed.weights, fit_mix(shots, labels, prior=prior, prior_shots=2.0).weights)
    posterior = settings.fit(shots, labels, prior=prior, clusters=clusters)
    expected = fit_posterior(shots, labels, prior=prior, temperature=3.0, clusters=clusters)
    np.testing.assert_array_equal(posterior.weights, expected.weights)


def test_settings_that_cannot_be_used_are_refused():
    for broken in (
        {"shares": {"learned": -0.1}},
        {"shares": {"learned": np.nan}},
        {"shares": {"learned": 1e308}},
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
