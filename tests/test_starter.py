"""The starter model: a known encoder is stored by its name, and every command takes the model by default."""

import pytest

import manymetrics as mm
from command_line import assert_refused, assert_usage_error, printed_json, printed_rows, run, write_shots
from manymetrics.classifier import predictor

needs_encoder = pytest.mark.skipif(
    not mm.list_encoders()["bge-small"], reason="the encoder bge-small is not on this machine: encoders get bge-small"
)
SHOTS = mm.Examples(
    ("where is my parcel", "has it been sent yet", "I want my money back", "please refund this order"),
    ("track", "track", "refund", "refund"),
)


@pytest.fixture
def shots(tmp_path):
    write_shots(tmp_path / "shots.tsv", SHOTS)
    return tmp_path / "shots.tsv"


@needs_encoder
def test_an_encoder_is_stored_by_its_name_and_fetched_when_the_model_is_loaded(make_bank, tmp_path, monkeypatch):
    model = mm.learn_metrics(make_bank(2), mm.Recipe(projection_steps=1, own_steps=1, clusters=2))
    model.save(tmp_path / "small", encoder_by_name=True)
    assert (tmp_path / "small" / "predictor.safetensors").stat().st_size < 5e6
    fetched = []
    monkeypatch.setattr(predictor, "get_encoder", fetched.append)
    assert mm.load_model(tmp_path / "small").fingerprint == model.fingerprint
    assert fetched == ["bge-small"]
    monkeypatch.setattr(predictor, "load_encoder", lambda name: model.predictor.letters)
    with pytest.raises(mm.ModelError, match="is not the one that the model was learned with"):
        mm.load_model(tmp_path / "small")
    monkeypatch.setattr(predictor, "list_encoders", dict)
    with pytest.raises(mm.ModelError, match="the encoder 'bge-small' is not one of"):
        mm.load_model(tmp_path / "small")


@needs_encoder
def test_the_starter_model_answers_without_a_bank(shots):
    classifier = mm.load_model("starter").adapt(SHOTS.texts, SHOTS.labels)
    assert classifier.predict(["when will it arrive?", "give me my money back"]).tolist() == ["track", "refund"]
    assert classifier.scope_proba(["where is the parcel"])[0] > classifier.scope_proba(["xqzt wvvk jjh"])[0]
    assert printed_json("predict", "--examples", shots, "where is my parcel now")["label"] == "track"
    assert all(printed_json(command, "--examples", shots) for command in ("adapt", "doctor"))


@needs_encoder
def test_the_first_argument_is_a_model_or_a_text(shots, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (("starter", "parcel"), ("where is my parcel", "refund please"), ("parcel",)):
        assert len(printed_rows("predict", "--examples", shots, *words)) == len(words) - (words[0] == "starter")
    for words in (("modle", "where is it"), ("modle", "--input", shots)):
        message = "There is no model folder 'modle'. Give the folder of a model."
        assert_refused(run("predict", "--examples", shots, *words), message)
    assert_usage_error(run("explain", "--examples", shots), "There is no text to explain.")


@needs_encoder
def test_the_card_of_the_starter_names_sources_and_licences():
    folder = mm.load_model("starter").folder
    card = (folder / "README.md").read_text(encoding="utf-8")
    names = mm.model.load_origin("starter").clusters.names
    assert len(names) > 70
    for name in names:
        row = next(line for line in card.splitlines() if line.startswith(f"| {name} | "))
        assert any(licence in row for licence in ("MIT", "Apache-2.0", "CC0 1.0", "CC BY 3.0", "CC BY 4.0"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
