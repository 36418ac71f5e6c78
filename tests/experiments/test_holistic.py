import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from experiments.baselines.holistic import fit_softmax, fit_together  # noqa: E402

from manymetrics.encode import Convolution, ConvolutionEncoder, Training, random_vectors  # noqa: E402
from manymetrics.values import Examples  # noqa: E402

WORDS = random_vectors(rows=256, dimensions=16)
SMALL = Convolution(window=3, width=12, dropout=0.1)
TELLING = (("red", "ruby"), ("green", "jade"), ("blue", "navy"))
SHORT = Training(steps=6, check_every=3, batch=8, ways=2, shots=2, queries=4)


def examples(seed, *, size=10):
    """Texts of three labels, each told by one word among others that say nothing."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), size)
    texts = [" ".join(rng.permutation(["so", "well", "then", rng.choice(TELLING[label])])) for label in labels]
    return Examples(texts, labels.astype(str), ("0", "1", "2"))


def random_encoder(words=WORDS, *, width=SMALL.width):
    rng = np.random.default_rng(5)
    filters = rng.normal(0, 0.2, (3, WORDS.dimensions, width)).astype(np.float32)
    return ConvolutionEncoder(words, filters, np.zeros(width, np.float32))


def test_the_holistic_network_gives_the_same_bits_for_the_same_seed_and_torch_its_threads_back():
    before = torch.get_num_threads()

    def rows(seed):
        tasks, held_out = [examples(0), examples(1)], [examples(2), examples(3)]
        sizes = {"convolution": SMALL, "training": SHORT, "rng": np.random.default_rng(seed)}
        return fit_together(WORDS, tasks, held_out, **sizes).encoder.encode(examples(3).texts)

    assert (rows(0) == rows(0)).all()
    assert (rows(0) != rows(1)).any()
    assert torch.get_num_threads() == before


def test_a_softmax_is_fitted_on_what_its_encoder_gives_and_the_encoder_stays():
    def weights(words):
        encoder, fresh = random_encoder(words), examples(3).texts
        before = encoder.encode(fresh)
        rng = np.random.default_rng(0)
        head = fit_softmax(encoder, examples(0), None, convolution=SMALL, training=SHORT, rng=rng)
        assert (encoder.encode(fresh) == before).all()
        return head.weights

    assert (weights(WORDS) == weights(WORDS)).all()
    assert (weights(random_vectors(rows=256, dimensions=16, seed=1)) != weights(WORDS)).any()


def test_a_softmax_can_begin_where_another_ended():
    encoder, few = random_encoder(), examples(0, size=2)
    start = np.full((SMALL.width, 3), 7, np.float32), np.array([1, 2, 3], np.float32)
    sizes = {"convolution": SMALL, "rng": np.random.default_rng(0)}
    near = fit_softmax(encoder, few, start, training=Training(steps=1, learning_rate=1e-4), **sizes)
    np.testing.assert_allclose(near.weights, start[0], atol=1e-3)
    np.testing.assert_allclose(near.offset, start[1], atol=1e-3)
