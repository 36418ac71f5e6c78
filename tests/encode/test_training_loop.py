import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Convolution, Labelled, Training, random_vectors  # noqa: E402
from manymetrics.encode.fitting import fit_classifier, fit_episodes  # noqa: E402
from manymetrics.encode.training import train  # noqa: E402
from manymetrics.errors import ManyMetricsError  # noqa: E402

VECTORS = random_vectors(rows=256, dimensions=16)
SMALL = Convolution(window=3, width=12, dropout=0.1)
WORDS = (("red", "ruby"), ("green", "jade"), ("blue", "navy"))


class Parabola:
    """Pulls a number to zero; its held-out score is best when the number passes `best`."""

    def __init__(self, best=None, loss=lambda x: x.square().sum()):
        self.x = torch.tensor([4.0], requires_grad=True)
        self.best, self._loss = best, loss

    def parameters(self):
        return [self.x]

    def kept_too(self):
        return []

    def after_step(self, learning_rate):
        pass

    def loss(self, rng):
        return self._loss(self.x)

    def score(self):
        return None if self.best is None else -abs(self.x.item() - self.best)


def examples(seed, *, size=10, classes=3):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), size)
    texts = [" ".join(rng.permutation(["so", "well", "then", rng.choice(WORDS[label])])) for label in labels]
    return Labelled(VECTORS.read(texts), labels)


def test_with_nothing_held_out_every_step_is_taken():
    objective = Parabola()
    trained = train(
        objective, Training(steps=37, check_every=5, patience=1, learning_rate=0.1), np.random.default_rng(0)
    )
    assert (trained.steps, trained.best_step) == (37, 37)
    assert abs(objective.x.item()) < 4


def test_training_stops_when_the_score_falls_and_keeps_the_best_weights():
    objective = Parabola(best=2.0)
    training = Training(steps=1000, check_every=1, patience=4, learning_rate=0.1)
    trained = train(objective, training, np.random.default_rng(0))
    assert trained.steps == trained.best_step + 4
    assert objective.x.item() == pytest.approx(2.0, abs=0.06)
    assert trained.score == pytest.approx(objective.score())


def test_the_last_step_is_looked_at_even_between_two_looks():
    objective = Parabola(best=0.0)
    trained = train(objective, Training(steps=7, check_every=5, learning_rate=0.1), np.random.default_rng(0))
    assert (trained.steps, trained.best_step) == (7, 7)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_leaving_the_finite_numbers_is_an_error(broken):
    objective = Parabola(loss=lambda x: (x * broken).sum())
    with pytest.raises(ManyMetricsError, match=r"left the finite numbers at step 2 .*Lower the learning rate"):
        train(objective, Training(steps=10, check_every=2), np.random.default_rng(0))


def test_a_classifier_learns_a_planted_problem():
    fitted = fit_classifier(
        VECTORS.table,
        [examples(0), examples(1)],
        [examples(2)],
        classes=3,
        convolution=SMALL,
        training=Training(steps=150, check_every=25, learning_rate=0.02),
        rng=np.random.default_rng(0),
    )
    fresh = examples(3)
    logits = fitted.encoder.responses(fresh.tokens) @ fitted.weights + fitted.offset
    assert (logits.argmax(axis=1) == fresh.labels).mean() > 0.95
    assert fitted.trained.score > -0.2  # mean log-likelihood; guessing gives -1.1


@pytest.mark.parametrize("kind", ["matching", "prototypical"])
def test_a_metric_learns_a_planted_problem(kind):
    trials = [(examples(5, size=2), examples(6))]
    few, many = (
        fit_episodes(
            VECTORS.table,
            [examples(0), examples(1)],
            trials,
            kind=kind,
            convolution=SMALL,
            training=Training(steps=steps, check_every=20, learning_rate=0.02, ways=3, shots=2, queries=9),
            rng=np.random.default_rng(0),
        )
        for steps in (1, 120)
    )
    assert many.trained.score > max(few.trained.score + 0.05, -0.35)
    assert many.temperature > few.temperature > 1


@pytest.mark.parametrize("kind", ["classifier", "matching", "prototypical"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(kind):
    def filters(seed):
        options = {
            "convolution": Convolution(window=3, width=4, dropout=0.5, lost_words=0.2),
            "training": Training(steps=6, check_every=3, batch=8, ways=2, shots=2, queries=4),
            "rng": np.random.default_rng(seed),
        }
        if kind == "classifier":
            return fit_classifier(VECTORS.table, [examples(0)], [examples(1)], classes=3, **options).encoder.filters
        trials = [(examples(1, size=2), examples(2, size=2))]
        return fit_episodes(VECTORS.table, [examples(0)], trials, kind=kind, **options).encoder.filters

    assert (filters(0) == filters(0)).all()
    assert (filters(0) != filters(1)).any()


def test_each_text_has_the_same_chance_whatever_the_size_of_its_task():
    from manymetrics.encode.network import ConvolutionNetwork
    from manymetrics.encode.objectives import Classification

    class Watched(ConvolutionNetwork):
        seen = ()

        def forward(self, tokens, **options):
            self.seen += tokens.texts
            return super().forward(tokens, **options)

    large, small = (
        Labelled(VECTORS.read([text] * size), np.zeros(size, np.int64)) for text, size in (("l", 90), ("s", 3))
    )
    network = Watched(VECTORS.table, Convolution(1, 2), np.random.default_rng(0))
    objective = Classification(network, [large, small], [], classes=2, convolution=SMALL, training=Training(batch=500))
    objective.loss(np.random.default_rng(0))
    assert network.seen.count("s") == pytest.approx(500 * 3 / 93, abs=12)
