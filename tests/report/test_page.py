"""The page about a model: its content, its safety, and the inputs that are refused."""

import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import manymetrics as mm
from command_line import done, run
from manymetrics.model import SharedLabels, save_origin
from manymetrics.report.page import printable, render
from manymetrics.store import Run

NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a'b`c", "\u202egnip\x07", "</style></svg>")


def write(place, tmp_path):
    mm.write_report(place, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def write_origin(origin, tmp_path):
    save_origin(origin, tmp_path / "learned")
    return write(tmp_path / "learned", tmp_path)


def section_names(text):
    return re.findall(r'<section id="([\w-]+)"', text)


def plain(markup):
    return " ".join(html.unescape(re.sub("<[^>]+>", "", markup)).split())


@pytest.fixture
def run_folder(plant, tmp_path):
    """The part of a finished run that a report needs."""
    save_origin(plant(tasks=20, clusters=4, share=0.8).origin, tmp_path / "run" / "learned")
    return tmp_path / "run"


def test_a_model_and_its_run_give_the_same_page(plant, tmp_path):
    model = plant(tasks=20, clusters=4)
    model.save(tmp_path / "model")
    save_origin(model.origin, tmp_path / "run" / "learned")
    text = write(tmp_path / "model", tmp_path)
    assert text == write(tmp_path / "run", tmp_path)
    assert section_names(text) == ["map", "clusters", "matrices", "metrics", "provenance"]
    assert "<h1>5 metrics from 20 tasks</h1>" in text
    assert "<b>5</b><span>metrics</span>" in text
    assert "<b>100%</b><span>of the pairs of tasks measured</span>" in text
    assert "<code>f00df00df00d</code>" in text
    for name in model.clusters.names:
        assert f"<bdi>{name}</bdi></li>" in text


def test_tasks_with_the_same_labels_and_the_combination_of_metrics_are_described(plant, tmp_path):
    origin = plant(tasks=4, clusters=2).origin
    text = write_origin(origin, tmp_path)
    assert "have the same labels" not in text
    assert "The metric of a new task is a weighted sum of cosines: frozen encoders have 30%" in text
    assert "the frozen encoder is used alone." in text
    shared = SharedLabels(("<b>", "spam"), origin.clusters.names[:2])
    text = write_origin(replace(origin, by_labels=(shared,), recipe=mm.Recipe.paper()), tmp_path)
    assert "2 tasks have the same labels (<bdi>&lt;b&gt;</bdi>, <bdi>spam</bdi>)" in text
    assert "A new task mixes the answers of the clusters' networks as published" in text
    assert "weighted sum of cosines" not in text


def test_values_are_printed_without_characters_that_markup_cannot_hold():
    values = (None, 2.50, -0.001, 3, "a\x00\ud800\x9b")
    assert [printable(value) for value in values] == ["", "2.5", "0", 3, "a" + 3 * "�"]
    text = render("map.html", task_map={"correlation": 1}, task_map_figure='<i> "\x07')
    assert text.count("&lt;i&gt; &#34;�") == 1


def test_names_from_the_data_are_escaped_and_the_page_refers_to_nothing_outside(plant, tmp_path):
    text = write_origin(plant(tasks=5, clusters=2, names=NASTY).origin, tmp_path)
    assert text.count("<style") == text.count("</style") == 1
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    for figure in re.findall("<svg.*?</svg>", text, flags=re.DOTALL):
        ET.fromstring(figure)  # noqa: S314 - our own
    text = write_origin(plant(tasks=20, clusters=4, share=0.8).origin, tmp_path)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    assert not re.search(r'\s(style|on\w+)="', text)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1))
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-")
    assert policy.endswith("; script-src 'none'; img-src data:")


def test_the_page_of_a_large_bank_has_images_instead_of_cells(plant, tmp_path):
    text = write_origin(plant(tasks=300, clusters=12, share=0.5).origin, tmp_path)
    assert text.count("data:image/png;base64,") == 3
    assert "h1v1h-1z" not in text
    assert len(text) < 1_000_000


def test_each_cluster_states_whether_it_has_its_own_metric(plant, tmp_path):
    origin = plant(tasks=8, clusters=4).origin  # all tasks are held out
    shared = {**origin.metrics[0], "name": "projection", "cluster": None}
    metrics = tuple(metric for metric in origin.metrics if metric["name"] not in ("cluster-1", "cluster-3"))
    held_out = tuple(name for name in origin.held_out if name not in list(origin.clusters)[3])
    text = write_origin(replace(origin, metrics=(*metrics, shared), held_out=held_out), tmp_path)
    assert "<h1>4 metrics from 8 tasks</h1>" in text
    assert "2 of them have their own metric. A new task combines 4 metrics: 2 of single clusters and 2 others." in text
    assert [plain(part) for part in re.findall(r'<p class="fate">(.*?)</p>', text, flags=re.DOTALL)] == [
        "It has its own metric.",
        "No metric of its own: on its held-out tasks (dvd.t2, dvd.t3) it did not improve on the shared metric. "
        "It uses projection.",
        "It has its own metric.",
        "No metric of its own: its training gave none. It uses projection.",
    ]


def test_targets_are_shown_with_their_assignment_and_its_reason(run_folder, tmp_path):
    assignment = {"summary": "assigned to the cluster of <dvd.t5>", "cluster": 1, "probability": 0.81}
    weights = {"cluster-1": 0.6, "projection": 0.1, "cluster-0": 0.3, "word-vectors": 0.0}
    targets = [
        {"task": "new", "accuracy": 0.5, "weights": weights, "fallback": None, "assignment": assignment},
        {"task": "alone", "accuracy": 0.25, "weights": {}, "fallback": "no cluster fits", "assignment": None},
    ]
    (tmp_path / "results.json").write_text(json.dumps({"format": 1, "targets": targets}))
    done("report", run_folder, "-o", tmp_path / "r.html", "--evaluation", tmp_path / "results.json")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert section_names(text) == ["map", "clusters", "targets", "matrices", "metrics", "provenance"]
    rows = re.findall(r"<tr>\s*<td.*?</tr>", text, flags=re.DOTALL)[:2]
    assert [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, flags=re.DOTALL)] for row in rows] == [
        ["new", "50.0%", "cluster-1", assignment["summary"], "cluster-1 60%, cluster-0 30%, projection 10%"],
        ["alone", "25.0%", "no cluster", "no evidence", "no cluster fits"],
    ]


def refusal(tmp_path, place, *words):
    result = run("report", place, "-o", tmp_path / "r.html", *words)
    assert (result.exit_code, result.stdout, (tmp_path / "r.html").exists()) == (2, "", False)
    (line,) = result.stderr.splitlines()
    return line


def test_other_folders_and_files_are_refused_in_one_line(run_folder, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "gone", tmp_path / "file"):
        assert f"{path} is neither a model nor a run. Give what `learn --out` or" in refusal(tmp_path, path)
    Run.open(tmp_path / "unfinished", "").close()
    assert "has not finished. Repeat the `learn` command" in refusal(tmp_path, tmp_path / "unfinished")
    (tmp_path / "x.json").write_text('{"targets": [{"task": 3}]}')
    message = "this is not an evaluation. Give what `manymetrics evaluate --json` wrote."
    assert message in refusal(tmp_path, run_folder, "--evaluation", tmp_path / "x.json")
    message = "cannot be read (No such file or directory). Check"
    assert message in refusal(tmp_path, run_folder, "--evaluation", tmp_path / "gone.json")
    with pytest.raises(mm.InputError, match="is a folder, and a report is one file"):
        mm.write_report(run_folder, tmp_path)
    (run_folder / "learned" / "origin.safetensors").write_bytes(b"")
    assert "origin.safetensors is damaged" in refusal(tmp_path, run_folder)
