import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Training  # noqa: E402
from manymetrics.encode.fitting import train  # noqa: E402
from manymetrics.errors import ManyMetricsError  # noqa: E402


class Parabola:
    """Pulls a number to zero; its held-out score is best when the number passes `best`."""

    def __init__(self, best=None, loss=lambda x: x.square().sum()):
        self.x = torch.tensor([4.0], requires_grad=True)
        self.best, self._loss = best, loss

    def parameters(self):
        return [self.x]

    def loss(self, rng):
        return self._loss(self.x)

    def score(self):
        return None if self.best is None else -abs(self.x.item() - self.best)


def test_with_nothing_held_out_every_step_is_taken():
    objective = Parabola()
    trained = train(
        objective, Training(steps=37, check_every=5, patience=1, learning_rate=0.1), np.random.default_rng(0)
    )
    assert (trained.n_taken, trained.n_steps) == (37, 37)
    assert abs(objective.x.item()) < 4


def test_training_stops_when_the_score_falls_and_keeps_the_best_weights():
    objective = Parabola(best=2.0)
    training = Training(steps=1000, check_every=1, patience=4, learning_rate=0.1)
    trained = train(objective, training, np.random.default_rng(0))
    assert trained.n_taken == trained.n_steps + 4
    assert objective.x.item() == pytest.approx(2.0, abs=0.06)
    assert trained.score == pytest.approx(objective.score())


def test_the_last_step_is_evaluated_even_between_two_evaluations():
    objective = Parabola(best=0.0)
    trained = train(objective, Training(steps=7, check_every=5, learning_rate=0.1), np.random.default_rng(0))
    assert (trained.n_taken, trained.n_steps) == (7, 7)


def test_leaving_the_finite_numbers_is_an_error():
    for broken in (float("nan"), float("inf")):
        objective = Parabola(loss=lambda x, broken=broken: (x * broken).sum())
        with pytest.raises(ManyMetricsError, match=r"left the finite numbers at step 2 .*Lower the learning rate"):
            train(objective, Training(steps=10, check_every=2), np.random.default_rng(0))
