"""The HTML page of an experiment: what is on it beside its model, what cannot be, and what is refused."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from experiments.report.figures import scale_over
from experiments.report.writing import write_report
from markupsafe import escape

from manymetrics.errors import InputError, ModelError
from manymetrics.evaluation.scoring import Estimate
from manymetrics.model import save_origin

NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a'b`c", "\u202egnip", "</style></svg>")


def written(place, tmp_path):
    write_report(place, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def change(folder, results):
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")


def test_results_are_on_the_page_with_their_model(experiment, tmp_path):
    folder, results = experiment
    page = written(folder, tmp_path)
    assert re.findall(r'<section id="([\w-]+)"', page) == [
        "results", "number-of-clusters", "map", "clusters", "matrices", "targets", "ablations", "metrics", "experiment",
        "provenance",
    ]  # fmt: skip
    assert "<h1>RobustTC-FSL on amazon</h1>" in page
    assert "<b>87.1</b> <small>84.1 to 90.1</small>" in page
    for method in (row["method"] for row in results["rows"] + results["ablations"]):
        assert f"<b>{escape(method)}</b>" in page
    assert ">does not apply</td>" in page
    assert f"<pre><code>{results['command']}</code></pre>" in page
    assert results["targets"][7]["fallback"] in page
    assert f"<li>{results['notes'][0]}</li>" in page
    assert "toys_games.t2.train.tsv is missing" in page
    assert page == written(folder, tmp_path)


def test_a_quick_run_is_marked(experiment, tmp_path):
    folder, results = experiment
    assert "quick run" not in written(folder, tmp_path)
    change(folder, {**results, "quick": True})
    assert "quick run: fewer seeds, capped tasks" in written(folder, tmp_path)


def test_a_row_that_was_not_asked_for_is_not_said_to_make_no_sense(experiment, tmp_path):
    folder, results = experiment
    left = next(row for row in results["rows"] if not row["applies"])
    left["note"] = "not run: ask for it with --with setfit"
    change(folder, results)
    page = written(folder, tmp_path)
    assert f">{left['method']}<" in page
    assert ">not run</td>" in page


def test_names_from_the_data_stay_names(plant, experiment, tmp_path):
    folder, results = experiment
    save_origin(plant(tasks=5, clusters=2, names=NASTY).origin, folder / "learned")
    results["targets"][0] |= {"task": NASTY[0], "weights": {NASTY[1]: 1.0}, "fallback": NASTY[0],
                              "nearest": [{"task": NASTY[0], "cosine": 1.0}]}  # fmt: skip
    results["rows"][0]["method"] = results["experiment"] = NASTY[0]
    results["command"] = results["data"] = results["notes"][0] = NASTY[4]
    results["rows"][1]["group"] = results["rows"][1]["note"] = NASTY[1]
    change(folder, results)
    page = written(folder, tmp_path)
    assert page.count("<script") == page.count("</script") == page.count("<style") == page.count("</style") == 1
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    for figure in re.findall("<svg.*?</svg>", page, flags=re.DOTALL):
        ET.fromstring(figure)  # noqa: S314 - our own


def test_nothing_on_the_page_leads_outside(experiment, tmp_path):
    page = written(experiment[0], tmp_path)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", page.replace("// Sorting", ""))
    assert not re.search(r'\s(style|on\w+)="', page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1).replace("&#39;", "'")
    assert re.fullmatch(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; "
        "img-src data:",
        policy,
    )


def test_what_cannot_be_read_is_refused(experiment, tmp_path):
    folder, results = experiment
    for content, message in (
        ("not json", r"results.json is damaged: "),
        ("[]", r"results.json is damaged: "),
        ('{"format": 1}', r"is damaged: KeyError\('experiment'\). Give the `reproduce` command again"),
        ('{"format": 3}', r"has format 3, and only formats up to 2 are known here"),
    ):
        (folder / "results.json").write_text(content)
        with pytest.raises(InputError, match=message):
            write_report(folder, tmp_path / "page.html")
    results["rows"][0]["accuracy"]["low"] = float("nan")
    change(folder, results)
    with pytest.raises(InputError, match="found nan where a number was expected"):
        write_report(folder, tmp_path / "page.html")
    with pytest.raises(InputError, match=r"There are no results in .*nowhere"):
        write_report(tmp_path / "nowhere", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_damaged_model_is_refused(experiment, tmp_path):
    (experiment[0] / "learned" / "origin.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match=r"origin\.safetensors is damaged"):
        write_report(experiment[0], tmp_path / "page.html")


def test_a_scale_reaches_round_numbers_beyond_the_intervals():
    scale = scale_over([Estimate(0.8, 0.71, 0.88)], 0, 100)
    assert (scale.low, scale.high) == (pytest.approx(0.7), pytest.approx(0.9))
    assert scale(0.8) == pytest.approx(50)
    assert scale.ticks == pytest.approx([0.7, 0.75, 0.8, 0.85, 0.9])
