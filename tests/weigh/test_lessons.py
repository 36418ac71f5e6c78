from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import read_bank
from manymetrics.weigh import Rules, Trust, draw_problems, learn_trust
from manymetrics.weigh.lessons import Parts, make_gibberish


@pytest.fixture(scope="module")
def problems(make_bank, model):
    read = read_bank(make_bank(3, size=8), model.vectors)
    return draw_problems(read, read.names, shots=3, seed=0)


@pytest.fixture(scope="module")
def parts(model):
    return Parts(model.vectors, model.metrics, Rules({}, 5.0, -np.inf))


def test_the_same_problems_teach_the_same_bits(parts, problems):
    found = learn_trust(parts, problems, seed=0)
    assert found == learn_trust(parts, problems, seed=0)
    assert found != learn_trust(parts, problems, seed=1)
    assert np.isfinite(list(vars(found.scope).values())).all()
    assert np.isfinite(list(vars(found.calibration).values())).all()


def test_one_task_has_no_strangers_and_leaves_the_default(parts, problems):
    first = [problem for problem in problems if problem.task == problems[0].task]
    assert learn_trust(parts, first, seed=0) == Trust()
    assert learn_trust(parts, [], seed=0) == Trust()


def test_what_was_learned_tells_strangers_apart(model, parts, problems):
    wise = replace(model, trust=learn_trust(parts, problems, seed=0), rules=parts.rules)
    drawn = problems[0]
    classifier = wise.adapt(drawn.shots.tokens.texts, drawn.shots.labels)
    nonsense = make_gibberish(60, np.random.default_rng(9))
    assert classifier.scope_proba(drawn.texts.tokens.texts).mean() > 0.6
    assert classifier.scope_proba(nonsense).mean() < 0.4


def test_gibberish_is_made_from_its_seed():
    first = make_gibberish(9, np.random.default_rng(0))
    assert first == make_gibberish(9, np.random.default_rng(0))
    assert len(set(first)) == 9
    assert all(3 <= len(text) < 40 for text in first)
