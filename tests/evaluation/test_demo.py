"""The demonstration: the agreement of its clusters with the planted families."""

import numpy as np

import manymetrics as mm
from manymetrics.evaluation.demo import planted_agreement


def test_a_task_without_a_family_counts_as_a_family_by_itself():
    past, _ = mm.sample_bank(0).split_off()
    families = [mm.collect.planted_family(name) for name in past.names]
    assert families.count(None) == 4

    def agreement(groups):
        _, labels = np.unique(groups, return_inverse=True)
        return planted_agreement(mm.Clusters(past.names, labels))

    assert agreement([family or name for name, family in zip(past.names, families, strict=True)]) == 1
    assert agreement([family or families[0] for family in families]) < 0.95
