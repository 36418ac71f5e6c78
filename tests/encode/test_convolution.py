"""The paper's convolution: the encoder against the formula, the network against torch's own, and its training."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import Convolution, ConvolutionEncoder, Tokenizer, Training, WordVectors, random_vectors
from manymetrics.errors import ManyMetricsError
from manymetrics.values import Episode, Examples

WORDS = random_vectors(rows=256, dimensions=6)
TEXTS = ["one two three four", "five", "six seven six seven six", "", "one one one"]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: nothing trains")


@pytest.fixture(scope="module")
def training(torch):
    """The module that trains."""
    from manymetrics.encode.training import convolution

    return convolution


def pooled_by_hand(table, filters, ids, starts):
    """The masked convolution as it is written on paper: zeros around each text, windows centred on its tokens only."""
    window, dimensions, _ = filters.shape
    around = np.zeros((window // 2, dimensions))
    rows = []
    for start, end in itertools.pairwise(starts):
        padded = np.vstack([around, table[ids[start:end]], around]).astype(np.float64)
        responses = [np.einsum("td,tdw->w", padded[at : at + window], filters) for at in range(end - start)]
        rows.append(np.max(responses, axis=0))
    return np.array(rows)


def ramp_by_hand(encoder, texts):
    tokens = encoder.words.tokens(texts)
    pooled = pooled_by_hand(encoder.words.table, encoder.filters, tokens.ids, tokens.starts)
    return np.maximum(pooled + encoder.bias, 0)


def random_encoder(window, width, seed=0):
    rng = np.random.default_rng(seed)
    filters = rng.standard_normal((window, WORDS.dimensions, width)).astype(np.float32)
    return ConvolutionEncoder(WORDS, filters, rng.standard_normal(width).astype(np.float32))


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 5, 15, 16, 17, 40]),
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=30).map(" ".join), min_size=1, max_size=5),
    st.integers(0, 99),
)
def test_an_encoder_is_the_ramp_of_the_masked_convolution_written_by_hand(window, width, texts, seed):
    encoder = random_encoder(window, width, seed)
    np.testing.assert_allclose(encoder.encode(texts), ramp_by_hand(encoder, texts), atol=1e-5)


def test_a_response_below_zero_everywhere_is_not_lifted_by_what_is_outside_a_text():
    words = WordVectors("one", np.ones((2, 1), np.float32), Tokenizer("words", vocabulary={"a": 1}))
    encoder = ConvolutionEncoder(words, np.full((3, 1, 2), -1, np.float32), np.full(2, 3, np.float32))
    # the window at either end sees two words, so the largest response is -2, and the bias 3 makes it 1
    assert encoder.encode(["a a a"]).tolist() == [[1, 1]]


def test_a_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match=r"Filters of shape \(2, 6, 3\).*Load the encoder with the vectors"):
        ConvolutionEncoder(WORDS, np.zeros((2, 6, 3), "f4"), np.zeros(3, "f4"))


# --- the network


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_forward_and_gradient_are_those_of_a_dense_masked_convolution(torch, training, window):
    """The same network by torch's own convolution over padded texts, windows outside a text masked out."""
    network, tokens = (
        training.ConvolutionNetwork(WORDS, Convolution(window, 7), np.random.default_rng(0)),
        WORDS.tokens(TEXTS),
    )
    with torch.no_grad():
        network.bias += torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, 7).astype(np.float32))
    taps, bias = (tensor.detach().clone().requires_grad_() for tensor in (network.taps, network.bias))
    rows = [torch.tensor(WORDS.table[tokens.ids[start:end]]) for start, end in itertools.pairwise(tokens.starts)]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (texts, longest, dimensions)
    kernel = taps.view(WORDS.dimensions, window, 7).permute(2, 0, 1)  # (width, dimensions, window)
    responses = torch.nn.functional.conv1d(padded.transpose(1, 2), kernel, padding=window // 2)
    outside = torch.arange(padded.shape[1])[None, :] >= torch.from_numpy(np.diff(tokens.starts))[:, None]
    theirs = torch.relu(responses.masked_fill(outside[:, None, :], -torch.inf).max(dim=2).values + bias)
    ours = network.forward(tokens)
    np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-5)
    np.testing.assert_allclose(network.encoder().encode(TEXTS), ours.detach(), atol=1e-6)
    slopes = torch.from_numpy(np.random.default_rng(2).standard_normal(ours.shape).astype(np.float32))
    for features in (ours, theirs):
        (features * slopes).sum().backward()
    np.testing.assert_allclose(network.taps.grad, taps.grad, atol=1e-5)
    np.testing.assert_allclose(network.bias.grad, bias.grad, atol=1e-5)


def test_dropout_hides_its_share_and_keeps_the_sum(torch, training):
    features = torch.ones(200, 200)
    dropped = training.drop_units(features, 0.25, np.random.default_rng(0))
    assert set(np.unique(dropped.numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    assert training.drop_units(features, 0.0, np.random.default_rng(0)) is features


# --- the loop


@pytest.fixture
def parabola(torch):
    """Pulls a number to zero; its held-out score is best when the number passes `best`."""

    class Parabola:
        def __init__(self, best=None, factor=1.0):
            self.x, self.best, self.factor = torch.tensor([4.0], requires_grad=True), best, factor

        def parameters(self):
            return [self.x]

        def loss(self, rng):
            return (self.factor * self.x.square()).sum()

        def score(self):
            return None if self.best is None else -abs(self.x.item() - self.best)

    return Parabola


def test_with_nothing_held_out_every_step_is_taken(training, parabola):
    trained = training.train(parabola(), Training(steps=37, check_every=5, patience=1), np.random.default_rng(0))
    assert (trained.n_taken, trained.n_steps) == (37, 37)


def test_training_stops_when_the_score_falls_and_keeps_the_best_weights(training, parabola):
    objective, settings = parabola(best=2.0), Training(steps=1000, check_every=1, patience=4, learning_rate=0.1)
    trained = training.train(objective, settings, np.random.default_rng(0))
    assert trained.n_taken == trained.n_steps + 4
    assert objective.x.item() == pytest.approx(2.0, abs=0.06)
    assert trained.score == pytest.approx(objective.score())


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_leaving_the_finite_numbers_is_an_error(training, parabola, factor):
    with pytest.raises(ManyMetricsError, match=r"left the finite numbers at step 2 .*Lower the learning rate"):
        training.train(parabola(factor=factor), Training(steps=10, check_every=2), np.random.default_rng(0))


# --- what is learned

TELLING = (("red", "ruby"), ("green", "jade"), ("blue", "navy"))
HOWS = ("classifier", "matching", "prototypical")


def examples(seed, *, size=10):
    """Texts of three labels, each told by one word among others that say nothing."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), size)
    texts = [" ".join(rng.permutation(["so", "well", "then", rng.choice(TELLING[label])])) for label in labels]
    return Examples(texts, labels.astype(str), ("0", "1", "2"))


def fit(training, how, steps, *, seed=0, dropout=0.1):
    sizes = {"convolution": Convolution(window=3, width=12, dropout=dropout), "rng": np.random.default_rng(seed)}
    sizes["training"] = Training(steps=steps, check_every=20, learning_rate=0.02, ways=3, shots=2, queries=9)
    if how == "classifier":
        return training.fit_classifier(WORDS, [examples(0), examples(1)], [examples(2)], **sizes)
    episode = Episode("held out", examples(5, size=2), examples(6))
    return training.fit_episodes(WORDS, [examples(0), examples(1)], [episode], rule=how, **sizes)


def encode(fitted, texts):
    return ConvolutionEncoder(WORDS, fitted.tensors["filters"], fitted.tensors["bias"]).encode(texts)


@pytest.mark.parametrize("how", HOWS)
def test_a_planted_problem_is_learned(training, how):
    few, many = (fit(training, how, steps) for steps in (1, 120))
    assert many.validation_loss < min(few.validation_loss - 0.05, 0.35)
    if how == "classifier":
        fresh = examples(3)
        logits = encode(many, fresh.texts) @ many.tensors["head"] + many.tensors["offset"]
        assert (logits.argmax(axis=1) == fresh.numbers).mean() > 0.95
    else:
        assert many.temperature != few.temperature, "it is learned"


@pytest.mark.parametrize("how", HOWS)
def test_the_same_seed_gives_the_same_bits_on_one_thread_whatever_torch_was_set_to(torch, training, how):
    before = torch.get_num_threads()
    try:
        found = []
        for count, seed in ((1, 0), (3, 0), (1, 1)):
            torch.set_num_threads(count)
            found.append(encode(fit(training, how, 6, seed=seed, dropout=0.5), examples(3).texts))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()
