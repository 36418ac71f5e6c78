"""The figures of a page: colours, PNG, heat maps, the map of tasks."""

import struct
import zlib

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from manymetrics.report.heatmap import heatmap_svg, heatmaps
from manymetrics.report.image import MISSING, STEPS, colour_indices, hex_colour, palette, png_bytes
from manymetrics.report.layout import distance_correlation, fit_to_square, task_positions
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.values import Similarity


def test_values_have_colour_indices_and_missing_values_their_own():
    indices = colour_indices(np.array([0.0, 0.5, 1.0, -9.0, 9.0, np.nan]), 0.0, 1.0)
    assert indices.tolist() == [0, (STEPS - 1) // 2, STEPS - 1, 0, STEPS - 1, MISSING]
    assert len(palette()) == 256


def test_a_png_file_holds_its_pixels():
    raw = png_bytes(np.array([[0, 1, 255], [2, 1, 0]], dtype=np.uint8))
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        chunks[kind] = raw[at + 8 : at + 8 + size]
        at += 12 + size
        assert struct.unpack(">I", raw[at - 4 : at])[0] == zlib.crc32(kind + chunks[kind])
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (3, 2)
    assert chunks[b"PLTE"] == palette().tobytes()
    assert chunks[b"tRNS"] == bytes([255] * 255 + [0])
    assert zlib.decompress(chunks[b"IDAT"]) == bytes([0, 0, 1, 255, 0, 2, 1, 0])


def test_cells_are_ordered_by_cluster(plant):
    model = plant(tasks=4, clusters=2, names=("d", "c", "b", "a"))
    maps = {heatmap.name: heatmap for heatmap in heatmaps(model.origin)}
    assert maps["transfer"].names == ("c", "d", "a", "b")
    heatmap = maps["similarity"]
    np.testing.assert_array_equal(heatmap.values[0], model.similarity.low_rank[1][[1, 0, 3, 2]])
    svg = heatmap_svg(heatmap)
    colour = hex_colour(palette()[colour_indices(heatmap.values, heatmap.low, heatmap.high)[0, 3]])
    value = f"{model.similarity.low_rank[1, 2]:.3f}"
    assert f'<path d="M3 0h1v1h-1z" fill="{colour}"><title>c · b: {value}</title></path>' in svg
    assert svg.count("h1v1h-1z") == 16


def similarity_of(low_rank):
    names = tuple(f"t{number}" for number in range(len(low_rank)))
    return Similarity(names, low_rank, np.zeros(low_rank.shape), sparsity=0.2, steps=1, gap=0.0)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("similar", [0.0, 0.65, 1.0, 1.00000201])
def test_tasks_that_are_all_alike_or_all_different_have_finite_positions(n, similar):
    noise = np.random.default_rng(n).uniform(-1e-12, 1e-12, (n, n))
    matrix = np.full((n, n), similar) + noise + noise.T
    parts = np.kron(np.eye(2), np.ones(((n + 1) // 2,) * 2))[:n, :n]
    for low_rank in (matrix, parts * matrix):
        positions = task_positions(similarity_of(low_rank))
        assert positions.shape == (n, 2)
        assert np.isfinite(positions).all()


def test_distances_that_fit_into_a_plane_are_preserved():
    points = np.random.default_rng(0).uniform(0, 0.6, (12, 2))
    similarity = similarity_of(1 - squareform(pdist(points)))
    positions = task_positions(similarity)
    np.testing.assert_allclose(pdist(positions), pdist(points), atol=2e-3)
    assert distance_correlation(positions, similarity) > 0.999


def test_tasks_of_a_cluster_are_close_and_no_two_marks_overlap():
    labels = np.arange(48) // 8
    similarity = similarity_of(np.equal.outer(labels, labels).astype(float))  # equal positions within a cluster
    positions = fit_to_square(task_positions(similarity), 400.0, 20.0)
    distances = squareform(pdist(positions)) + np.diag(np.full(48, np.inf))
    assert distances.min() >= 20.0
    assert (labels[distances.argmin(axis=1)] == labels).all()
    assert 0 <= positions.min() <= positions.max() <= 400


def overlap(first, second):
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


@pytest.mark.parametrize(("tasks", "clusters"), [(2, 1), (16, 1), (16, 4), (30, 5), (300, 9)])
def test_names_cover_neither_marks_nor_each_other_and_of_few_tasks_none_is_missing(plant, tasks, clusters):
    names = [f"a task of client {number} {'long' * (number % 3)}" for number in range(tasks)]
    origin = plant(tasks=tasks, clusters=clusters, names=names).origin
    drawn = task_map(origin)
    labels = drawn.labels
    assert len({label.index for label in labels}) == len(labels) > 0
    assert len(labels) == tasks or tasks > 30
    marks = [(x - 1, y - 1, x + 1, y + 1) for x, y in drawn.positions]
    for number, label in enumerate(labels):
        assert 0 <= min(label.box) <= max(label.box) <= 500
        assert not any(overlap(label.box, mark) for mark in marks)
        assert not any(overlap(label.box, other.box) for other in labels[:number])
    svg = task_map_svg(drawn)
    assert svg.count('class="task-name') == len(labels)
    assert svg.count('class="leader"') == sum(label.detached for label in labels)
    assert "a task of client 1 lo…</text>" in svg or tasks == 300


def test_the_map_has_a_mark_for_each_task_and_a_legend_of_clusters(plant):
    origin = plant(tasks=12, clusters=3).origin
    drawn = task_map(origin)
    svg = task_map_svg(drawn)
    assert svg.count(", cluster-2</title>") == 4
    assert svg.count("<circle") == 12 + 3
    assert len(drawn.links) == 3 * 3, "a tree of four tasks in each cluster"
    assert task_map_svg(task_map(plant(tasks=60, clusters=30).origin)).count(">others</text>") == 1
