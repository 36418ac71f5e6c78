"""Stage 6, metrics + examples -> weights: the members of a mix, the mix itself, the fallback, and how all is chosen."""

from manymetrics.weigh.ensemble import REGRESSION, Ensemble, Member
from manymetrics.weigh.mix import blend, fit_mix, fit_mix_as_published
from manymetrics.weigh.routing import Route, Routing, learn_routing
from manymetrics.weigh.selection import (
    answer_likelihood,
    choose_settings,
    choose_unlearned_metrics,
    draw_episodes,
    hold_out_tasks,
)
from manymetrics.weigh.settings import MixSettings

__all__ = [
    "REGRESSION",
    "Ensemble",
    "Member",
    "MixSettings",
    "Route",
    "Routing",
    "answer_likelihood",
    "blend",
    "choose_settings",
    "choose_unlearned_metrics",
    "draw_episodes",
    "fit_mix",
    "fit_mix_as_published",
    "hold_out_tasks",
    "learn_routing",
]
