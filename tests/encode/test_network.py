import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Convolution, TunedWords, random_vectors  # noqa: E402
from manymetrics.encode.network import AveragingNetwork, ConvolutionNetwork, drop_units  # noqa: E402
from manymetrics.values import Texts  # noqa: E402

WORDS = random_vectors(rows=64, dimensions=6)
TEXTS = Texts(["one two three four", "five", "six seven six seven six", "", "one one one"])


def network(window=3, width=7, *, learn_words=False):
    convolution = Convolution(window, width, learn_words=learn_words)
    made = ConvolutionNetwork(WORDS, convolution, np.random.default_rng(0))
    with torch.no_grad():
        made.bias += torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, width).astype(np.float32))
    return made


def dense_forward(net, texts, dtype=torch.float32, taps=None):
    """The same network by torch's own convolution over padded texts, windows outside a text masked out."""
    given = (WORDS.table.copy(), net.taps.detach() if taps is None else taps, net.bias.detach())
    table, taps, bias = (torch.as_tensor(tensor).clone().to(dtype).requires_grad_() for tensor in given)
    tokens = WORDS.tokens(texts)
    lengths = np.diff(tokens.starts)
    rows = [table[tokens.ids[start:end].astype(np.int64)] for start, end in itertools.pairwise(tokens.starts)]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (texts, longest, dimensions)
    kernel = taps.view(WORDS.dimensions, net.window, net.width).permute(2, 0, 1)  # (width, dimensions, window)
    responses = torch.nn.functional.conv1d(padded.transpose(1, 2), kernel, padding=net.window // 2)
    outside = torch.arange(padded.shape[1])[None, :] >= torch.from_numpy(lengths)[:, None]
    responses = responses.masked_fill(outside[:, None, :], -torch.inf)
    return torch.relu(responses.max(dim=2).values + bias), table, taps, bias


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_forward_and_gradient_are_those_of_a_dense_masked_convolution(window):
    net = network(window)
    ours = net.forward(TEXTS)
    theirs, _, taps, bias = dense_forward(net, TEXTS)
    np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-5)
    slopes = torch.from_numpy(np.random.default_rng(2).standard_normal(ours.shape).astype(np.float32))
    (ours * slopes).sum().backward()
    (theirs * slopes).sum().backward()
    np.testing.assert_allclose(net.taps.grad, taps.grad, atol=1e-5)
    np.testing.assert_allclose(net.bias.grad, bias.grad, atol=1e-5)


def test_the_gradient_is_what_finite_differences_say():
    net, texts = network(width=3), TEXTS[:3]
    net.forward(texts).square().sum().backward()

    def value(place, step):
        moved = net.taps.detach().double().clone()
        moved.view(-1)[place] += step
        return float(dense_forward(net, texts, torch.float64, taps=moved)[0].square().sum().detach())

    for place in range(0, net.taps.numel(), 5):
        slope = (value(place, 1e-5) - value(place, -1e-5)) / 2e-5
        assert net.taps.grad.view(-1)[place].item() == pytest.approx(slope, abs=1e-3)


def test_the_encoder_made_from_a_network_agrees_with_it_to_the_last_bits():
    net = network()
    np.testing.assert_allclose(net.encoder().encode(TEXTS), net.forward(TEXTS).detach(), atol=1e-6)


def test_the_encoder_keeps_its_weights_when_training_goes_on():
    net = network()
    encoder = net.encoder()
    before = encoder.filters.copy()
    with torch.no_grad():
        net.taps += 1
    assert (encoder.filters == before).all()


def test_responses_start_with_variance_near_one():
    tokens = WORDS.tokens(Texts(f"word{number}" for number in range(60)))
    net = ConvolutionNetwork(WORDS, Convolution(1, 400), np.random.default_rng(0))
    rows = torch.from_numpy(WORDS.rows(tokens.ids)) @ net.taps.detach()
    assert float(rows.var()) == pytest.approx(1, abs=0.2)


def test_words_are_hidden_only_where_that_is_asked_for():
    net, texts = network(), Texts(["one two three four five six"] * 4)
    whole = net.forward(texts).detach()
    some = net.forward(texts, word_dropout=0.5, rng=np.random.default_rng(0)).detach()
    assert not np.allclose(whole, some)
    assert np.allclose(net.forward(texts).detach(), whole)


def test_where_all_words_are_hidden_the_bias_is_left():
    net = network()
    hidden = net.forward(TEXTS[:2], word_dropout=1.0, rng=np.random.default_rng(0)).detach()
    np.testing.assert_allclose(hidden, torch.relu(net.bias).detach().expand(2, -1), atol=1e-6)


def test_dropout_hides_its_share_and_keeps_the_sum():
    features = torch.ones(200, 200)
    dropped = drop_units(features, 0.25, np.random.default_rng(0))
    assert set(np.unique(dropped.numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    assert drop_units(features, 0.0, np.random.default_rng(0)) is features


def take_steps(net, count=1):
    """Some steps on the words alone, as training takes them."""
    adam = torch.optim.SparseAdam(net.sparse_parameters, lr=0.05)
    for _ in range(count):
        adam.zero_grad()
        net.forward(TEXTS).square().sum().backward()
        adam.step()


def test_learned_words_get_the_gradient_of_a_dense_masked_convolution_and_others_none():
    net = network(learn_words=True)
    net.forward(TEXTS).square().sum().backward()
    theirs, table, _, _ = dense_forward(net, TEXTS)
    theirs.square().sum().backward()
    (words,) = net.sparse_parameters
    np.testing.assert_allclose(words.grad.to_dense(), table.grad, atol=1e-4)
    assert set(words.grad.coalesce().indices().ravel().tolist()) == set(WORDS.tokens(TEXTS).ids.tolist())


@pytest.mark.parametrize("make", [lambda: network(learn_words=True), lambda: AveragingNetwork(WORDS)])
def test_words_that_did_not_occur_stay_where_they_are_and_so_does_the_table_they_came_from(make):
    net, before = make(), WORDS.table.copy()
    take_steps(net, 3)
    moved = np.flatnonzero((net.sparse_parameters[0].detach().numpy() != WORDS.table).any(axis=1))
    assert len(moved)
    assert set(moved) <= set(WORDS.tokens(TEXTS).ids.tolist())
    assert (WORDS.table == before).all()


def test_an_encoder_with_learned_words_keeps_those_that_moved():
    net = network(learn_words=True)
    take_steps(net)
    encoder = net.encoder()
    assert isinstance(encoder.words, TunedWords)
    assert encoder.words.given is WORDS
    np.testing.assert_allclose(encoder.encode(TEXTS), net.forward(TEXTS).detach().numpy(), atol=0.02)


def test_an_encoder_with_fixed_words_shares_their_table():
    net = network()
    net.forward(TEXTS).sum().backward()
    assert net.sparse_parameters == []
    assert net.encoder().words is WORDS


def test_an_averaging_network_adds_up_words_and_gives_each_its_gradient():
    net, tokens = AveragingNetwork(WORDS), WORDS.tokens(TEXTS)
    sums = net.forward(TEXTS)
    owners = np.repeat(np.arange(len(tokens)), np.diff(tokens.starts))
    expected = np.zeros(sums.shape, dtype=np.float32)
    np.add.at(expected, owners, WORDS.table[tokens.ids])
    np.testing.assert_allclose(sums.detach(), expected, atol=1e-5)
    slopes = np.random.default_rng(0).standard_normal(sums.shape).astype(np.float32)
    (sums * torch.from_numpy(slopes)).sum().backward()
    gradient = np.zeros_like(WORDS.table)
    np.add.at(gradient, tokens.ids, slopes[owners])
    np.testing.assert_allclose(net.sparse_parameters[0].grad.to_dense(), gradient, atol=1e-5)
    assert net.parameters == []


def test_an_averaging_network_becomes_word_vectors_of_which_some_were_moved():
    net, lengths = AveragingNetwork(WORDS), WORDS.lengths(TEXTS)[:, None]
    assert net.encoder() is WORDS, "nothing was moved yet"
    take_steps(net)
    encoder = net.encoder()
    assert isinstance(encoder, TunedWords)
    np.testing.assert_allclose(lengths * encoder.encode(TEXTS), net.forward(TEXTS).detach(), atol=0.01)
    assert not np.allclose(encoder.encode(TEXTS), WORDS.encode(TEXTS), atol=0.01)


def test_words_hidden_from_an_averaging_network_are_not_added():
    net = AveragingNetwork(WORDS)
    assert not net.forward(TEXTS, word_dropout=1.0, rng=np.random.default_rng(0)).detach().any()
