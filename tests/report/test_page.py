"""The page as a whole: what is on it, what cannot be, and what is refused."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.store import save_learned

NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a'b`c", "\u202egnip", "</style></svg>")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def written(place, tmp_path):
    mm.write_report(place, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def sections(page):
    return re.findall(r'<section id="([\w-]+)"', page)


def test_a_model_and_its_run_give_the_same_page(plant, tmp_path):
    model = plant(tasks=20, clusters=4)
    model.save(tmp_path / "model")
    save_learned(model, tmp_path / "run" / "learned")
    page = written(tmp_path / "model", tmp_path)
    assert page == written(tmp_path / "run", tmp_path)
    assert sections(page) == ["clusters", "matrices", "metrics", "provenance"]
    assert "<h1>4 metrics from 20 tasks</h1>" in page
    assert "f00df00df00d" in page


def test_results_are_on_the_page(experiment, tmp_path):
    folder, results = experiment
    page = written(folder, tmp_path)
    assert sections(page) == [
        "results", "number-of-clusters", "clusters", "matrices", "targets", "ablations", "metrics", "provenance",
    ]  # fmt: skip
    assert "<b>87.1</b> <small>84.1 to 90.1</small>" in page
    for method in (row["method"] for row in results["rows"] + results["ablations"]):
        assert method in page
    assert "does not apply" in page
    assert results["command"] in page
    assert results["targets"][7]["fallback"] in page
    assert page == written(folder, tmp_path)


def test_a_row_that_was_not_asked_for_is_not_said_to_make_no_sense(experiment, tmp_path):
    folder, results = experiment
    left = next(row for row in results["rows"] if not row["applies"])
    left["note"] = "not run: ask for it with --with setfit"
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    assert f">{left['method']}<" in written(folder, tmp_path)
    assert ">not run</td>" in written(folder, tmp_path)


def test_names_from_the_data_stay_names(plant, experiment, tmp_path):
    folder, results = experiment
    model = plant(tasks=5, clusters=2, names=NASTY)
    save_learned(model, folder / "learned")
    results["targets"][0] |= {"task": NASTY[0], "weights": {NASTY[1]: 1.0}, "fallback": NASTY[0],
                              "nearest": [{"task": NASTY[0], "cosine": 1.0}]}  # fmt: skip
    results["rows"][0]["method"] = results["experiment"] = NASTY[0]
    results["command"] = results["data"] = results["notes"][0] = NASTY[4]
    results["rows"][1]["group"] = results["rows"][1]["note"] = NASTY[1]
    (folder / "results.json").write_text(json.dumps(results))
    page = written(folder, tmp_path)
    assert page.count("<script") == page.count("</script") == page.count("<style") == page.count("</style") == 1
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    for figure in mm.write_figures(folder, tmp_path / "figures"):
        if figure.suffix == ".svg":
            ET.fromstring(figure.read_bytes())  # noqa: S314 - our own


def test_nothing_on_the_page_leads_outside(experiment, tmp_path):
    page = written(experiment[0], tmp_path)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", page.replace("// Sorting", ""))
    assert not re.search(r'\s(style|on\w+)="', page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;; base-uri &#x27;none&#x27;; form-action &#x27;none&#x27;; ")
    assert "unsafe" not in policy


def test_the_page_of_a_large_bank_stays_small(plant, tmp_path):
    save_learned(plant(tasks=300, clusters=12, share=0.5), tmp_path / "run" / "learned")
    page = written(tmp_path / "run", tmp_path)
    assert page.count("data:image/png;base64,") == 4
    assert len(page) < 1_000_000


def test_the_command_writes_page_and_figures(experiment, tmp_path):
    folder, _ = experiment
    done = run("report", folder, "-o", tmp_path / "r.html", "--figures", tmp_path / "figures")
    assert (done.exit_code, done.stdout.strip()) == (0, str(tmp_path / "r.html"))
    maps = ("transfer", "transfer-by-target", "pairs", "similarity")
    others = ("methods", "clusters-accuracy", "clusters-balanced-accuracy", "weights", "accuracy-by-target")
    names = {*(f"{name}.svg" for name in maps + others), *(f"{name}.png" for name in maps)}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == names


def refused(tmp_path, place):
    done = run("report", place, "-o", tmp_path / "r.html")
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert done.stdout == ""
    assert not (tmp_path / "r.html").exists()
    (line,) = done.stderr.splitlines()
    return line


def test_what_cannot_be_reported_is_refused_in_one_line(tmp_path):
    assert "it is not there. Give the folder that `learn --out`" in refused(tmp_path, tmp_path / "gone")
    (tmp_path / "file").write_text("")
    assert "it is a file. Give the folder" in refused(tmp_path, tmp_path / "file")
    assert "it is neither a model nor a run. Give the folder" in refused(tmp_path, tmp_path)
    (tmp_path / "recipe.toml").write_text("")
    assert "has not finished. Give the `learn` command again" in refused(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("not json", "results.json is damaged: "),
        ("[]", "results.json is damaged: "),
        ('{"format": 1}', "results.json is damaged: KeyError('experiment'). Give the `reproduce` command again."),
        ('{"format": 2}', "has format 2, and this version of manymetrics reads up to 1. Upgrade manymetrics."),
    ],
)
def test_damaged_results_are_refused(experiment, tmp_path, change, message):
    folder, _ = experiment
    (folder / "results.json").write_text(change)
    assert message in refused(tmp_path, folder)


def test_numbers_that_are_none_are_refused(experiment, tmp_path):
    folder, results = experiment
    results["rows"][0]["accuracy"]["low"] = float("nan")
    (folder / "results.json").write_text(json.dumps(results))
    assert "found nan where a number was expected" in refused(tmp_path, folder)


def test_a_damaged_run_is_refused(experiment, tmp_path):
    folder, _ = experiment
    (folder / "learned" / "measured.safetensors").write_bytes(b"")
    assert "measured.safetensors is damaged" in refused(tmp_path, folder)


def test_a_page_is_a_file_and_figures_are_a_folder(experiment, tmp_path):
    folder, _ = experiment
    with pytest.raises(mm.InputError, match="is a folder, and a report is one file"):
        mm.write_report(folder, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(mm.InputError, match="is a file, and figures go to a folder"):
        mm.write_figures(folder, tmp_path / "file")
