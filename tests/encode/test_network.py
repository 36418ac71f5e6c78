import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Convolution, random_vectors  # noqa: E402
from manymetrics.encode.encoders import encoder_tensors, open_encoder, open_mean_encoder, unit_rows  # noqa: E402
from manymetrics.encode.network import AveragingNetwork, ConvolutionNetwork, drop_units  # noqa: E402

VECTORS = random_vectors(rows=64, dimensions=6)
TEXTS = ["one two three four", "five", "six seven six seven six", "", "one one one"]


def network(window=3, width=7, seed=0):
    made = ConvolutionNetwork(VECTORS.table, Convolution(window, width), np.random.default_rng(seed))
    with torch.no_grad():
        made.bias += torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, width).astype(np.float32))
    return made


def dense_forward(net, tokens, dtype):
    """The same network by torch's own convolution over padded texts, windows outside a text masked out."""
    taps = net.taps.detach().to(dtype).requires_grad_()
    bias = net.bias.detach().to(dtype).requires_grad_()
    lengths = np.diff(tokens.starts)
    padded = torch.zeros(len(tokens), int(lengths.max()), VECTORS.dimensions, dtype=dtype)
    for row, (start, end) in enumerate(zip(tokens.starts[:-1], tokens.starts[1:], strict=True)):
        padded[row, : end - start] = torch.from_numpy(VECTORS.table[tokens.ids[start:end]]).to(dtype)
    kernel = taps.view(VECTORS.dimensions, net.window, net.width).permute(2, 0, 1)  # (width, dimensions, window)
    responses = torch.nn.functional.conv1d(padded.transpose(1, 2), kernel, padding=net.window // 2)
    outside = torch.arange(padded.shape[1])[None, :] >= torch.from_numpy(lengths)[:, None]
    responses = responses.masked_fill(outside[:, None, :], -torch.inf)
    return torch.relu(responses.max(dim=2).values + bias), taps, bias


@pytest.mark.parametrize("window", [1, 3, 5])
def test_forward_and_gradient_are_those_of_a_dense_masked_convolution(window):
    net, tokens = network(window), VECTORS.read(TEXTS)
    ours = net.forward(tokens)
    theirs, taps, bias = dense_forward(net, tokens, torch.float32)
    np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-5)
    slopes = torch.from_numpy(np.random.default_rng(2).standard_normal(ours.shape).astype(np.float32))
    (ours * slopes).sum().backward()
    (theirs * slopes).sum().backward()
    np.testing.assert_allclose(net.taps.grad, taps.grad, atol=1e-5)
    np.testing.assert_allclose(net.bias.grad, bias.grad, atol=1e-5)


def test_the_gradient_is_what_finite_differences_say():
    net, tokens = network(width=3), VECTORS.read(TEXTS[:3])
    net.forward(tokens).square().sum().backward()
    _, taps, bias = dense_forward(net, tokens, torch.float64)

    def value(place, step):
        with torch.no_grad():
            moved = net.taps.detach().double().clone()
            moved.view(-1)[place] += step
            stand_in = type("Moved", (), {"taps": moved, "bias": bias, "window": net.window, "width": net.width})
            return float(dense_forward(stand_in, tokens, torch.float64)[0].square().sum())

    for place in range(0, taps.numel(), 5):
        slope = (value(place, 1e-5) - value(place, -1e-5)) / 2e-5
        assert net.taps.grad.view(-1)[place].item() == pytest.approx(slope, abs=1e-3)


def test_the_encoder_made_from_a_network_agrees_with_it_to_the_last_bits():
    net, tokens = network(), VECTORS.read(TEXTS)
    np.testing.assert_allclose(net.encoder().responses(tokens), net.forward(tokens).detach(), atol=1e-6)


def test_the_encoder_keeps_its_weights_when_training_goes_on():
    net = network()
    encoder = net.encoder()
    before = encoder.filters.copy()
    with torch.no_grad():
        net.taps += 1
    assert (encoder.filters == before).all()


def test_responses_start_with_variance_near_one():
    tokens = VECTORS.read([f"word{number}" for number in range(60)])
    net = ConvolutionNetwork(VECTORS.table, Convolution(1, 400), np.random.default_rng(0))
    rows = torch.from_numpy(VECTORS.table[tokens.ids]) @ net.taps.detach()
    assert float(rows.var()) == pytest.approx(1, abs=0.2)


def test_lost_words_vanish_from_training_only():
    net, tokens = network(), VECTORS.read(["one two three four five six"] * 4)
    whole = net.forward(tokens).detach()
    some = net.forward(tokens, lost_words=0.5, rng=np.random.default_rng(0)).detach()
    assert not np.allclose(whole, some)
    assert np.allclose(net.forward(tokens).detach(), whole)


def test_words_all_lost_leave_the_bias():
    net = network()
    lost = net.forward(VECTORS.read(TEXTS[:2]), lost_words=1.0, rng=np.random.default_rng(0)).detach()
    np.testing.assert_allclose(lost, torch.relu(net.bias).detach().expand(2, -1), atol=1e-6)


def test_dropout_hides_its_share_and_keeps_the_sum():
    features = torch.ones(200, 200)
    dropped = drop_units(features, 0.25, np.random.default_rng(0))
    assert set(np.unique(dropped.numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    assert drop_units(features, 0.0, np.random.default_rng(0)) is features


def test_learned_words_take_the_first_step_that_adam_over_the_whole_table_would():
    convolution = Convolution(3, 8, learn_words=True)
    net = ConvolutionNetwork(VECTORS.table, convolution, np.random.default_rng(0))
    tokens = VECTORS.read(["the cat sat on the mat", "a dog barked", "the mat"])
    net.forward(tokens).sum().backward()
    slopes = np.zeros_like(VECTORS.table)
    for words, rows in net.words.used:
        slopes[words] += rows.grad.numpy()
    whole = torch.nn.Parameter(torch.from_numpy(VECTORS.table.copy()))
    whole.grad = torch.from_numpy(slopes)
    torch.optim.Adam([whole], lr=0.01).step()
    net.move_words(0.01)
    np.testing.assert_allclose(net.words.table, whole.detach().numpy(), atol=1e-6)


def test_words_that_did_not_occur_stay_where_they_are():
    net = ConvolutionNetwork(VECTORS.table, Convolution(3, 8, learn_words=True), np.random.default_rng(0))
    tokens = VECTORS.read(["the cat sat on the mat"])
    for _ in range(3):
        net.forward(tokens).sum().backward()
        net.move_words(0.01)
    moved = np.flatnonzero((net.words.table != VECTORS.table).any(axis=1))
    assert set(moved) <= set(tokens.ids.tolist())
    assert len(moved)


def test_an_encoder_with_learned_words_comes_back_from_its_tensors():
    net = ConvolutionNetwork(VECTORS.table, Convolution(3, 8, learn_words=True), np.random.default_rng(0))
    tokens = VECTORS.read(["the cat sat on the mat"])
    net.forward(tokens).sum().backward()
    net.move_words(0.05)
    encoder = net.encoder()
    tensors = encoder_tensors(encoder, VECTORS.table)
    assert tensors["moved_to"].dtype == np.float16
    assert (open_encoder(tensors, VECTORS.table).responses(tokens) == encoder.responses(tokens)).all()
    np.testing.assert_allclose(encoder.responses(tokens), net.forward(tokens).detach().numpy(), atol=0.02)


def test_an_encoder_with_fixed_words_says_nothing_of_them():
    net = ConvolutionNetwork(VECTORS.table, Convolution(3, 8), np.random.default_rng(0))
    tensors = encoder_tensors(net.encoder(), VECTORS.table)
    assert set(tensors) == {"filters", "bias"}
    assert open_encoder(tensors, VECTORS.table).table is VECTORS.table


def test_an_averaging_network_adds_up_words_and_gives_each_its_slope():
    net, tokens = AveragingNetwork(VECTORS.table), VECTORS.read(TEXTS)
    sums = net.forward(tokens)
    bounds = zip(tokens.starts[:-1], tokens.starts[1:], strict=True)
    wanted = np.stack([VECTORS.table[tokens.ids[start:end]].sum(axis=0) for start, end in bounds])
    np.testing.assert_allclose(sums.detach(), wanted, atol=1e-5)
    slopes = np.random.default_rng(0).standard_normal(sums.shape).astype(np.float32)
    (sums * torch.from_numpy(slopes)).sum().backward()
    ((words, rows),) = net.words.used
    theirs = np.zeros_like(VECTORS.table)
    np.add.at(theirs, tokens.ids, slopes[np.repeat(np.arange(len(tokens)), np.diff(tokens.starts))])
    np.testing.assert_allclose(rows.grad, theirs[words], atol=1e-5)


def test_an_averaging_network_becomes_a_mean_that_comes_back_from_its_tensors():
    net, tokens = AveragingNetwork(VECTORS.table), VECTORS.read(TEXTS)
    net.forward(tokens).square().sum().backward()
    net.move_words(0.05)
    encoder = net.encoder()
    np.testing.assert_allclose(encoder.encode(tokens), unit_rows(net.forward(tokens).detach().numpy()), atol=2e-3)
    again = open_mean_encoder(encoder_tensors(encoder, VECTORS.table), VECTORS.table)
    assert (again.table == encoder.table).all()
    assert (again.table != VECTORS.table).any()


def test_words_lost_to_an_averaging_network_are_not_added():
    net, tokens = AveragingNetwork(VECTORS.table), VECTORS.read(TEXTS)
    assert not net.forward(tokens, lost_words=1.0, rng=np.random.default_rng(0)).detach().any()
