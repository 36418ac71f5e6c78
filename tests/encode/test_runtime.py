"""A BERT run by onnxruntime: no embedding depends on its batch, factors are inputs, all near to 32-bit floats."""

import json
import pickle
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manymetrics as mm
from manymetrics.encode import LowRankFactors, open_encoders, pack_encoders
from manymetrics.encode.runtime.bert import Bert
from manymetrics.encode.runtime.session import BATCH_TOKENS, Session
from tiny_sentence import VOCABULARY, bert_encoder, random_bert

WIDTH, WIDE = 32, 64
BERT = Bert.from_weights(random_bert(50, WIDTH, WIDE), n_heads=4)
SESSIONS = {pooling: Session(BERT, name="tiny", pooling=pooling) for pooling in ("cls", "mean")}
TEXTS = ["where is my parcel", "refund", "", "my my my refund please please", "parcel"]


def random_factors(bert, rank=3, names=None, seed=0, size=0.2):
    rng = np.random.default_rng(seed)
    return LowRankFactors({
        name: (size * rng.standard_normal((n_in, rank)), size * rng.standard_normal((rank, n_out)))
        for name, (n_out, n_in) in bert.matrix_shapes().items()
        if names is None or name in names
    })  # fmt: skip


FACTORS = random_factors(BERT).inputs()


def cosines(first, second):
    return (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)


token_ids = st.lists(st.integers(0, 49), min_size=1, max_size=64)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("factors", [{}, FACTORS], ids=["base", "factors"])
@settings(max_examples=60, deadline=None)
@given(batch=st.lists(token_ids, min_size=1, max_size=12))
def test_an_embedding_has_the_same_bits_alone_and_in_any_padded_batch(pooling, factors, batch):
    session = SESSIONS[pooling]
    together = session.run(batch, factors)
    alone = np.concatenate([session.run([tokens], factors) for tokens in batch])
    assert (together == alone).all()


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_batches_are_cut_by_tokens_and_hold_each_text_once(lengths):
    batches, texts = [], [[number] * length for number, length in enumerate(lengths)]

    def run(batch, factors):
        batches.append(batch)
        return np.array([[float(ids[0])] for ids in batch])

    with patch.object(SESSIONS["cls"], "run", run):
        assert SESSIONS["cls"].embed(texts, {})[:, 0].tolist() == list(range(len(texts)))
    assert sorted(len(ids) for batch in batches for ids in batch) == sorted(lengths)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(map(len, batch)) <= BATCH_TOKENS


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_embeddings_are_near_to_those_of_32_bit_floats(pooling):
    torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to compare with")
    from manymetrics.encode.training.transformer import LowRankTransformer

    encoder = bert_encoder(VOCABULARY, width=WIDTH, heads=4, pooling=pooling)
    transformer = LowRankTransformer(encoder, n_frozen=2, rank=1, start=None, seed=0)
    transformer.put(random_bert(len(VOCABULARY), WIDTH, 2 * WIDTH))
    with torch.no_grad():
        exact = transformer.embed(TEXTS, max_tokens=128).numpy()
    assert cosines(encoder.encode(TEXTS), exact).min() > 0.998


def test_factors_act_as_their_product_added_to_the_matrix():
    factors = random_factors(BERT, names=["encoder.layer.0.output.dense", "encoder.layer.1.attention.self.query"])
    weights = BERT.weights()
    for name, (a, b) in factors.pairs.items():
        weights[f"{name}.weight"] = weights[f"{name}.weight"] + (a.astype(np.float32) @ b.astype(np.float32)).T
    merged = Session(Bert.from_weights(weights, n_heads=4), name="merged", pooling="mean")
    batch = [[1, 2, 3], [4, 5]]
    as_inputs = SESSIONS["mean"].run(batch, factors.inputs())
    assert cosines(as_inputs, merged.run(batch, {})).min() > 0.998
    assert cosines(as_inputs, SESSIONS["mean"].run(batch, {})).max() < 0.99


def test_a_tuned_encoder_shares_the_session_of_its_base_and_stores_its_weights_once():
    base = bert_encoder(VOCABULARY)
    tuned = [base.with_factors(random_factors(base.bert, seed=seed)) for seed in range(3)]
    assert all(encoder._session is base._session for encoder in tuned)
    assert tuned[0].base is base
    assert tuned[0].with_factors(tuned[1].factors).base is base
    assert len({encoder.fingerprint for encoder in (base, *tuned)}) == 4
    tensors, about, _ = pack_encoders([*tuned, base])
    assert len(about) == 4
    assert sum(name.endswith("word_embeddings.weight") for name in tensors) == 1
    opened = open_encoders(tensors, json.loads(json.dumps(about)))
    for encoder in (*tuned, base):
        (again,) = (other for other in opened if other.fingerprint == encoder.fingerprint)
        assert again.name == encoder.name
        assert (again.encode(TEXTS) == encoder.encode(TEXTS)).all()
        assert (pickle.loads(pickle.dumps(encoder)).encode(TEXTS) == encoder.encode(TEXTS)).all()  # noqa: S301
    assert (tuned[0].encode(TEXTS) != base.encode(TEXTS)).any()


def test_factors_of_other_shapes_or_names_are_refused():
    base = bert_encoder(VOCABULARY)
    name = "encoder.layer.0.output.dense"
    for pairs, message in [
        ({name: (np.ones((5, 2)), np.ones((2, 16)))}, r"a matrix of shape \(16, 5\), the encoder has \(16, 32\)"),
        ({"pooler": (np.ones((5, 2)), np.ones((2, 5)))}, "none of that name"),
        ({name: (np.ones((32, 2)), np.ones((3, 16)))}, "do not multiply"),
        ({name: (np.full((32, 2), 1e6), np.ones((2, 16)))}, "not finite in half precision"),
    ]:
        with pytest.raises(mm.DataError, match=message):
            base.with_factors(LowRankFactors(pairs))
    with pytest.raises(mm.DataError, match="every matrix needs A and B"):
        LowRankFactors.from_tensors({f"{name}.A": np.ones((32, 2))})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("encoder.layer.1.output.dense.bias"), r"output\.dense\.bias is missing"),
        (lambda weights: weights.pop("embeddings.word_embeddings.weight"), "embeddings or its first layer are missing"),
        (lambda weights: weights.update({"embeddings.LayerNorm.bias": np.ones(3)}), r"of shape \(3,\), expected"),
    ],
)
def test_weights_that_are_not_those_of_a_bert_are_refused(change, message):
    weights = random_bert(10, 16, 32)
    change(weights)
    with pytest.raises(mm.DataError, match=message):
        Bert.from_weights(weights, n_heads=2)
    with pytest.raises(mm.DataError, match="cannot have 3 attention heads"):
        Bert.from_weights(random_bert(10, 16, 32), n_heads=3)


@pytest.fixture(scope="module")
def bge():
    if not mm.list_encoders()["bge-small"]:
        pytest.skip("bge-small is not in the cache; fetch it with: manymetrics encoders get bge-small")
    return mm.load_encoder("bge-small")


SENTENCES = [
    "where is my parcel", "refund", "", "The book was far too long, and the end made no sense. " * 4, "is it shipped?",
    "turn on the light in the kitchen, please", "wo ist mein Paket", "I would like to change the address of my order",
    "great " * 200,
]  # fmt: skip


@pytest.mark.parametrize("with_factors", [False, True])
def test_bge_small_gives_the_same_bits_alone_and_in_any_batch(bge, with_factors):
    factors = random_factors(bge.bert, rank=8, size=0.02).inputs() if with_factors else {}
    tokens, rng = bge.tokenize(SENTENCES), np.random.default_rng(0)
    alone = np.concatenate([bge._session.run([ids], factors) for ids in tokens])
    for size in (2, 3, 5, 9, 4, 2):
        chosen = rng.choice(len(tokens), size, replace=False)
        assert (bge._session.run([tokens[index] for index in chosen], factors) == alone[chosen]).all()


def test_bge_small_is_near_to_32_bit_floats(bge):
    torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to compare with")
    from safetensors.numpy import load_file

    from manymetrics.encode.sources.encoders import ENCODERS
    from manymetrics.encode.sources.folder import WEIGHTS
    from manymetrics.encode.training.transformer import LowRankTransformer

    transformer = LowRankTransformer(bge, n_frozen=bge.bert.n_layers, rank=1, start=None, seed=0)
    transformer.put(load_file(ENCODERS.path("bge-small") / WEIGHTS))
    with torch.no_grad():
        exact = np.concatenate([transformer.embed([text], max_tokens=128).numpy() for text in SENTENCES])
    assert cosines(bge.encode(SENTENCES), exact).min() >= 0.998
