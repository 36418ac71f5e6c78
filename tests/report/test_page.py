"""The page as a whole: what is on it, what cannot be, and what is refused."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.model import SharedLabels, save_origin
from manymetrics.report.markup import element
from manymetrics.report.page import page
from manymetrics.report.sections import Section

NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a'b`c", "\u202egnip", "</style></svg>")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def written(place, tmp_path):
    mm.write_report(place, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def written_of(origin, tmp_path):
    save_origin(origin, tmp_path / "learned")
    return written(tmp_path / "learned", tmp_path)


def sections(text):
    return re.findall(r'<section id="([\w-]+)"', text)


@pytest.fixture
def run_folder(plant, tmp_path):
    """What a finished run leaves for a report."""
    save_origin(plant(tasks=20, clusters=4, share=0.8).origin, tmp_path / "run" / "learned")
    return tmp_path / "run"


def test_a_model_and_its_run_give_the_same_page(plant, tmp_path):
    model = plant(tasks=20, clusters=4)
    model.save(tmp_path / "model")
    save_origin(model.origin, tmp_path / "run" / "learned")
    text = written(tmp_path / "model", tmp_path)
    assert text == written(tmp_path / "run", tmp_path)
    assert sections(text) == ["map", "clusters", "matrices", "metrics", "provenance"]
    assert "<h1>4 metrics from 20 tasks</h1>" in text
    assert "f00df00df00d" in text
    for name in model.clusters.names:
        assert f"<bdi>{name}</bdi></li>" in text


def test_tasks_that_share_their_labels_are_named(plant, tmp_path):
    origin = plant(tasks=4, clusters=2).origin
    assert "have the same labels" not in written_of(origin, tmp_path)
    text = written_of(replace(origin, by_labels=(SharedLabels(("<b>", "spam"), origin.clusters.names[:2]),)), tmp_path)
    assert "2 tasks have the same labels (<bdi>&lt;b&gt;</bdi>, <bdi>spam</bdi>)" in text


def test_the_settings_of_the_mix_are_told_as_they_are_used(plant, make_model, tmp_path):
    save_origin(plant(tasks=4, clusters=2).origin, tmp_path / "learned")
    text = written(tmp_path / "learned", tmp_path)
    assert "The answers of metrics are multiplied, every group of them to the same power." in text
    assert "their mix starts from a prior that counts as much as 5 examples." in text
    assert "No task is taken to be out of clusters." in text
    make_model(shared_labels=("good", "bad"), threshold=0.3).save(tmp_path / "shared")
    text = written(tmp_path / "shared", tmp_path)
    assert "a prior over the kinds of metrics (learned 40%, frozen 20%, lexical 20%, regression 20%)." in text
    assert "Of its examples 5 count as one. It is out of clusters if no learned metric rises above chance by" in text
    assert ">shared labels</td>" in text


def test_learned_exponents_are_told_as_parts_of_an_answer(plant, tmp_path):
    origin = plant(tasks=4, clusters=2).origin
    exponents = {"learned": (0.0, 0.0, 1.0), "letters": (float(np.log(3)), 0.0, 0.0)}
    save_origin(replace(origin, settings=replace(origin.settings, exponents=exponents)), tmp_path / "learned")
    text = written(tmp_path / "learned", tmp_path)
    assert "with 5 examples of each of 10 labels the parts are learned 25%, letters 75%." in text


def test_a_page_shows_the_sections_it_is_given():
    own = Section("weather", "Weather", "How it was", element("p", "Rain."))
    text = page("A day", element("h1", "A day"), [own], style=".x { top: 0; }", script="'use strict';").decode()
    assert '<section id="weather"><h2>How it was</h2><p>Rain.</p></section>' in text
    assert '<nav><a href="#weather">Weather</a></nav>' in text
    assert ".x { top: 0; }</style>" in text
    assert "<script>'use strict';</script>" in text
    assert "<script" not in page("A day", element("h1", "A day"), [own]).decode()


def test_names_from_the_data_stay_names(plant, tmp_path):
    save_origin(plant(tasks=5, clusters=2, names=NASTY).origin, tmp_path / "run" / "learned")
    text = written(tmp_path / "run", tmp_path)
    assert text.count("<style") == text.count("</style") == 1
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    for figure in mm.write_figures(tmp_path / "run", tmp_path / "figures"):
        if figure.suffix == ".svg":
            ET.fromstring(figure.read_bytes())  # noqa: S314 - our own


def test_nothing_on_the_page_leads_outside(run_folder, tmp_path):
    text = written(run_folder, tmp_path)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    assert not re.search(r'\s(style|on\w+)="', text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1).replace("&#x27;", "'")
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-")
    assert policy.endswith("; script-src 'none'; img-src data:")


def test_the_page_of_a_large_bank_holds_pictures_instead_of_cells(plant, tmp_path):
    save_origin(plant(tasks=300, clusters=12, share=0.5).origin, tmp_path / "run" / "learned")
    text = written(tmp_path / "run", tmp_path)
    assert text.count("data:image/png;base64,") == 4
    assert "h1v1h-1z" not in text
    assert len(text) < 1_000_000


def test_the_command_writes_page_and_figures(run_folder, tmp_path):
    done = run("report", run_folder, "-o", tmp_path / "r.html", "--figures", tmp_path / "figures")
    assert (done.exit_code, done.stdout.strip()) == (0, str(tmp_path / "r.html"))
    names = {f"{name}.{kind}" for name in ("transfer", "transfer-by-target", "pairs", "similarity")
             for kind in ("svg", "png")}  # fmt: skip
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"map.svg", *names}


def test_a_cluster_says_whether_its_metric_was_kept(plant, tmp_path):
    origin = plant(tasks=8, clusters=4).origin  # held out: every task
    shared = {**origin.metrics[0], "name": "other-clusters", "cluster": None}
    kept = tuple(metric for metric in origin.metrics if metric["name"] not in ("cluster-1", "cluster-3"))
    held = tuple(name for name in origin.held_out if name not in list(origin.clusters)[3])
    save_origin(replace(origin, metrics=(*kept, shared), held_out=held), tmp_path / "learned")
    text = written(tmp_path / "learned", tmp_path)
    assert "<h1>2 metrics from 8 tasks</h1>" in text
    assert "2 of them got a metric of their own; a new task mixes them." in text
    fates = [re.sub("<[^>]+>", "", fate) for fate in re.findall(r'<p class="fate">(.*?)</p>', text)]
    assert fates == [
        "Metric of its own: kept.",
        "Metric of its own: dropped; on its held-out tasks (dvd.t2, dvd.t3) it did not beat the shared metric. "
        "other-clusters serves it.",
        "Metric of its own: kept.",
        "Metric of its own: dropped; its training left no metric. other-clusters serves it.",
    ]


@pytest.fixture
def evaluation(tmp_path):
    """An evaluation of two targets: one that was routed and one that nothing told about."""
    route = {"said": "", "alike": ["dvd.t5", "dvd.t6"], "reason": "names", "cluster": 1, "probability": 0.81}
    weights = {"cluster-1": 0.6, "letters": 0.1, "cluster-0": 0.3, "ridge": 0.0}
    targets = [
        {"task": "new", "accuracy": 0.5, "weights": weights, "fallback": None, "route": route},
        {"task": "alone", "accuracy": 0.25, "weights": {}, "fallback": "no cluster fits", "route": None},
    ]
    (tmp_path / "results.json").write_text(json.dumps({"format": 1, "targets": targets}))
    return tmp_path / "results.json"


def test_targets_are_shown_with_where_they_were_routed_and_why(run_folder, evaluation, tmp_path):
    done = run("report", run_folder, "-o", tmp_path / "r.html", "--evaluation", evaluation)
    assert done.exit_code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert sections(text) == ["map", "clusters", "targets", "matrices", "metrics", "provenance"]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr><td.*?</tr>", text)][:2]
    cells = [[re.sub("<[^>]+>", "", cell) for cell in row] for row in rows]
    heaviest = "cluster-1 60%, cluster-0 30%, letters 10%"
    assert cells == [
        ["new", "50.0%", "dvd.t5, dvd.t6 cluster-1", "81%", "its labels are called alike", heaviest],
        ["alone", "25.0%", "no cluster", "–", "nothing told", "no cluster fits"],
    ]
    assert "<title>new: taken for a task like dvd.t5, dvd.t6 with a probability of 81%: its labels are" in text


def test_families_colour_the_map_and_are_compared_with_clusters_and_routes(run_folder, evaluation, tmp_path):
    (tmp_path / "bank").mkdir()
    entries = [{"name": f"books.t{number}", "family": "reading"} for number in range(5)]
    entries += [{"name": f"dvd.t{number}", "family": "watching"} for number in range(5, 9)]
    entries += [{"name": "new", "family": "watching", "role": "target"}]
    (tmp_path / "bank" / "manifest.json").write_text(json.dumps({"tasks": entries}))
    asked = ["--families", tmp_path / "bank", "--evaluation", evaluation, "--figures", tmp_path / "figures"]
    assert run("report", run_folder, "-o", tmp_path / "r.html", *asked).exit_code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>Map of the tasks, by similarity; colours: families</title>" in text
    assert "<title>dvd.t6, cluster-1, watching</title>" in text
    assert "<title>dvd.t9, cluster-1, no family named</title>" in text
    assert '<p class="muted">watching 4</p>' in text
    assert "1 of the 1 targets with a family were taken for tasks most of which are of it." in text
    assert "colours: families" in (tmp_path / "figures" / "map.svg").read_text(encoding="utf-8")


def test_what_is_no_evaluation_and_a_bank_without_families_are_refused(run_folder, tmp_path):
    def told(*words):
        done = run("report", run_folder, "-o", tmp_path / "r.html", *words)
        assert (done.exit_code, done.stdout) == (2, "")
        return done.stderr

    (tmp_path / "x.json").write_text('{"targets": [{"task": 3}]}')
    assert "this is not an evaluation. Give what `manymetrics evaluate --json` wrote." in told(
        "--evaluation", tmp_path / "x.json"
    )
    assert "cannot be read (No such file or directory). Check" in told("--evaluation", tmp_path / "gone.json")
    assert "found no manifest.json, where the family of tasks is named." in told("--families", tmp_path)
    (tmp_path / "manifest.json").write_text('[{"name": "a"}]')
    assert 'names the family of no task. Give entries a "family".' in told("--families", tmp_path)


def refused(tmp_path, place):
    done = run("report", place, "-o", tmp_path / "r.html")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert not (tmp_path / "r.html").exists()
    (line,) = done.stderr.splitlines()
    return line


def test_what_cannot_be_reported_is_refused_in_one_line(tmp_path):
    assert "it is not there. Give the folder that `learn --out`" in refused(tmp_path, tmp_path / "gone")
    (tmp_path / "file").write_text("")
    assert "it is a file. Give the folder" in refused(tmp_path, tmp_path / "file")
    assert "it is neither a model nor a run. Give the folder" in refused(tmp_path, tmp_path)
    mm.Run.open(tmp_path / "run", "").close()
    assert "has not finished. Give the `learn` command again" in refused(tmp_path, tmp_path / "run")


def test_a_damaged_run_is_refused(run_folder, tmp_path):
    (run_folder / "learned" / "origin.safetensors").write_bytes(b"")
    assert "origin.safetensors is damaged" in refused(tmp_path, run_folder)


def test_a_page_is_a_file_and_figures_are_a_folder(run_folder, tmp_path):
    with pytest.raises(mm.InputError, match="is a folder, and a report is one file"):
        mm.write_report(run_folder, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(mm.InputError, match="is a file, and figures go to a folder"):
        mm.write_figures(run_folder, tmp_path / "file")
