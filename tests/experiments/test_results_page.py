"""The page of results says what results.json says, and is the one that is kept."""

from experiments.clusterings import FOUND, KNOWN, NONE, ONE, RANDOM
from experiments.figures import page_figures
from experiments.page import PAGE, STORED, read_stored
from experiments.several import OWN, ROWS, SHOTS

from experiments import page, plan


def estimate(value, spread=0.02):
    return {"value": value, "low": value - spread, "high": value + spread}


def words(**results):
    """The page on some results, on one line."""
    return " ".join(page.write_page({}, **results).split())


def several_results(own, shots, found, *, none=-0.05, banks=("diverse",)):
    gains = {(NONE, ""): none, (KNOWN, OWN): own, (KNOWN, SHOTS): shots, (FOUND, SHOTS): found}
    rows = [
        {"clusters": row[0], "weights": row[1], "accuracy": estimate(0.7), "balanced_accuracy": estimate(0.6),
         "auc": None, "accuracy_gain": None if row == (ONE, "") else estimate(gains.get(row, 0.0))}
        for row in ROWS
    ]  # fmt: skip
    kinds = ("transfer", "all evidence")
    return {
        "format": 2,
        "banks": banks, "tasks": 83, "sources": 40, "families": 14, "over": "families", "metrics": "projections",
        "draws": 20, "rows": rows, "own_over_others": {kind: estimate(0.03) for kind in (FOUND, KNOWN, RANDOM)},
        "over_random": {kind: {how: estimate(0.02) for how in (SHOTS, OWN)} for kind in (FOUND, KNOWN)},
        "by_draw": {OWN: [0.5, 0.6]}, "chosen": [{"tasks of a known cluster": 4.0}],
        "agreement": dict.fromkeys((*kinds, *(f"{one}, families counted" for one in kinds)), 0.3),
        "command": "the command", "data": "f00d", "seconds_of_processor": 600.0,
    }  # fmt: skip


def test_whether_several_metrics_pay_is_said_by_the_intervals():
    said = {
        "Several metrics pay:": (0.05, 0.05, 0.05),
        "Several metrics pay where the clusters are known:": (0.05, 0.05, 0.0),
        "Several metrics would pay if a task's cluster were known; told from its shots they do not:": (0.05, 0.0, 0.0),
        "One metric is enough:": (0.01, 0.01, -0.01),
    }
    for verdict, gains in said.items():
        assert f"{verdict} over one metric for all, the own family's gains" in words(several=[several_results(*gains)])
    worse, same = (words(several=[several_results(0, 0, 0, none=none)]) for none in (0.04, 0.0))
    assert "One metric for all is worse than the encoder as it is, by +4.0 [+2.0, +6.0]." in worse
    assert "The encoder as it is does as well as one metric for all: +0.0" in same
    mixed = words(several=[several_results(0, 0, 0, banks=("diverse", "amazon"))])
    assert "### Diverse texts and Amazon reviews in one bank" in mixed
    assert "has probably seen such reviews" in mixed
    assert "A known cluster has 4 tasks to learn from (the median)" in mixed
    assert "random clusters have 50.0 to 60.0" in mixed


def test_the_page_in_the_repository_is_made_from_the_kept_results():
    kept, *others = read_stored(STORED)
    assert set(kept) == set(plan.EXPERIMENTS)
    assert PAGE.read_text(encoding="utf-8") == page.write_page(kept, *others)
    for name, results in kept.items():
        for place, figure in page_figures(name, results).items():
            assert (PAGE.parent / place).read_bytes() == figure
