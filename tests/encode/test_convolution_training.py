import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Convolution, ConvolutionEncoder, Training, random_vectors  # noqa: E402
from manymetrics.encode.training import convolution as fitting  # noqa: E402
from manymetrics.encode.training.convolution import Classification, ConvolutionNetwork  # noqa: E402
from manymetrics.values import Episode, Examples  # noqa: E402

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


def episode(seed, *, queries=10):
    return Episode("held out", examples(seed, size=2), examples(seed + 1, size=queries))


def encode(fitted, texts):
    return ConvolutionEncoder(WORDS, fitted.tensors["filters"], fitted.tensors["bias"]).encode(texts)


def accuracy(fitted, fresh):
    logits = encode(fitted, fresh.texts) @ fitted.tensors["head"] + fitted.tensors["offset"]
    return (logits.argmax(axis=1) == fresh.numbers).mean()


def test_a_classifier_learns_a_planted_problem():
    fitted = fitting.fit_classifier(
        WORDS,
        [examples(0), examples(1)],
        [examples(2)],
        convolution=SMALL,
        training=Training(steps=150, check_every=25, learning_rate=0.02),
        rng=np.random.default_rng(0),
    )
    assert accuracy(fitted, examples(3)) > 0.95
    assert fitted.validation_loss < 0.2  # mean negative log-likelihood; guessing gives 1.1


@pytest.mark.parametrize("rule", ["matching", "prototypical"])
def test_a_metric_learns_a_planted_problem(rule):
    few, many = (
        fitting.fit_episodes(
            WORDS,
            [examples(0), examples(1)],
            [episode(5)],
            rule=rule,
            convolution=SMALL,
            training=Training(steps=steps, check_every=20, learning_rate=0.02, ways=3, shots=2, queries=9),
            rng=np.random.default_rng(0),
        )
        for steps in (1, 120)
    )
    assert many.validation_loss < min(few.validation_loss - 0.05, 0.35)
    assert min(few.temperature, many.temperature) > 1
    assert many.temperature != few.temperature, "it is learned"


def fit(how, *, seed=0):
    """Every way of training, for a few steps on the same examples."""
    convolution = Convolution(window=3, width=4, dropout=0.5)
    sizes = {"convolution": convolution, "training": SHORT, "rng": np.random.default_rng(seed)}
    if how == "classifier":
        return fitting.fit_classifier(WORDS, [examples(0)], [examples(1)], **sizes)
    return fitting.fit_episodes(WORDS, [examples(0)], [episode(1, queries=2)], rule=how, **sizes)


WAYS = ("classifier", "matching", "prototypical")


def learned(how, seed):
    return encode(fit(how, seed=seed), examples(3).texts)


@pytest.mark.parametrize("how", WAYS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(how):
    assert (learned(how, 0) == learned(how, 0)).all()
    assert (learned(how, 0) != learned(how, 1)).any()


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("how", WAYS)
def test_training_takes_one_thread_and_gives_the_others_back(how, monkeypatch):
    seen, train = [], fitting.train

    def noting(*args):
        seen.append(torch.get_num_threads())
        return train(*args)

    monkeypatch.setattr(fitting, "train", noting)
    fit(how)
    assert seen == [1]
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_training_that_fails_gives_the_threads_back(monkeypatch):
    def fail(*args):
        raise RuntimeError("no more memory")

    monkeypatch.setattr(fitting, "train", fail)
    for how in WAYS:
        with pytest.raises(RuntimeError, match="no more memory"):
            fit(how)
        assert torch.get_num_threads() == 3


def test_each_text_has_the_same_chance_whatever_the_size_of_its_task():
    class Watched(ConvolutionNetwork):
        seen = ()

        def forward(self, tokens, **options):
            self.seen += tuple(tokens.ids.tolist())
            return super().forward(tokens, **options)

    large, small = (Examples([text] * size, ["a"] * size, ("a", "b")) for text, size in (("l", 90), ("s", 3)))
    network = Watched(WORDS, Convolution(1, 2), np.random.default_rng(0))
    objective = Classification(network, [large, small], [], batch=500)
    objective.loss(np.random.default_rng(0))
    assert network.seen.count(WORDS.tokens(["s"]).ids[0]) == pytest.approx(500 * 3 / 93, abs=12)
