import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Convolution, Training, random_vectors  # noqa: E402
from manymetrics.encode.training.convolution import ConvolutionNetwork, drop_units, train  # noqa: E402
from manymetrics.errors import ManyMetricsError  # noqa: E402

WORDS = random_vectors(rows=64, dimensions=6)
TEXTS = ["one two three four", "five", "six seven six seven six", "", "one one one"]
TOKENS = WORDS.tokens(TEXTS)


def network(window=3, width=7):
    net = ConvolutionNetwork(WORDS, Convolution(window, width), np.random.default_rng(0))
    with torch.no_grad():
        net.bias += torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, width).astype(np.float32))
    return net


def dense_forward(net, texts):
    """The same network by torch's own convolution over padded texts, windows outside a text masked out."""
    taps, bias = (tensor.detach().clone().requires_grad_() for tensor in (net.taps, net.bias))
    table = torch.tensor(WORDS.table)
    tokens = WORDS.tokens(texts)
    lengths = np.diff(tokens.starts)
    rows = [table[tokens.ids[start:end].astype(np.int64)] for start, end in itertools.pairwise(tokens.starts)]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (texts, longest, dimensions)
    kernel = taps.view(WORDS.dimensions, net.window, net.width).permute(2, 0, 1)  # (width, dimensions, window)
    responses = torch.nn.functional.conv1d(padded.transpose(1, 2), kernel, padding=net.window // 2)
    outside = torch.arange(padded.shape[1])[None, :] >= torch.from_numpy(lengths)[:, None]
    responses = responses.masked_fill(outside[:, None, :], -torch.inf)
    return torch.relu(responses.max(dim=2).values + bias), taps, bias


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_forward_and_gradient_are_those_of_a_dense_masked_convolution(window):
    net = network(window)
    ours = net.forward(TOKENS)
    theirs, taps, bias = dense_forward(net, TEXTS)
    np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-5)
    slopes = torch.from_numpy(np.random.default_rng(2).standard_normal(ours.shape).astype(np.float32))
    (ours * slopes).sum().backward()
    (theirs * slopes).sum().backward()
    np.testing.assert_allclose(net.taps.grad, taps.grad, atol=1e-5)
    np.testing.assert_allclose(net.bias.grad, bias.grad, atol=1e-5)


def test_the_encoder_made_from_a_network_agrees_with_it_to_the_last_bits():
    net = network()
    np.testing.assert_allclose(net.encoder().encode(TEXTS), net.forward(TOKENS).detach(), atol=1e-6)


def test_the_encoder_keeps_its_weights_when_training_goes_on():
    net = network()
    encoder = net.encoder()
    before = encoder.filters.copy()
    with torch.no_grad():
        net.taps += 1
    assert (encoder.filters == before).all()


def test_dropout_hides_its_share_and_keeps_the_sum():
    features = torch.ones(200, 200)
    dropped = drop_units(features, 0.25, np.random.default_rng(0))
    assert set(np.unique(dropped.numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    assert drop_units(features, 0.0, np.random.default_rng(0)) is features


# --- the loop


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
