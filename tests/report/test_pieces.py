"""The pieces of a page: markup, colours, PNG, heat maps, the map of tasks."""

import struct
import zlib

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from manymetrics.report.colours import MISSING, STEPS, as_hex, distinct, palette, places, ramp
from manymetrics.report.heatmaps import against_usual, heat_map_png, heat_map_svg, heat_maps
from manymetrics.report.markup import Markup, element, join
from manymetrics.report.png import png_bytes
from manymetrics.report.positions import agreement, fit_into, place_tasks, tree
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.values import Similarity


def test_text_and_attributes_are_escaped_and_markup_is_not():
    assert element("p", '<b> & "c"', title='"><x>') == '<p title="&quot;&gt;&lt;x&gt;">&lt;b&gt; &amp; "c"</p>'
    assert join(Markup("<i>"), "<i>", None, 2.50) == "<i>&lt;i&gt;2.5"
    assert element("b", "a\x00\ud800\x9b") == "<b>a\ufffd\ufffd\ufffd</b>"


def lightness(colour):
    """L of OKLab, from bytes: an independent way back."""
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    mixed = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]) @ light
    return float(np.array([0.2105, 0.7936, -0.0041]) @ np.cbrt(mixed))


def test_the_ramp_rises_in_lightness_by_equal_steps():
    steps = np.diff([lightness(colour) for colour in ramp()[::12]])
    assert (steps > 0).all()
    assert steps.max() < 1.25 * steps.min()


def test_values_take_their_places_and_what_is_missing_its_own():
    found = places(np.array([0.0, 0.5, 1.0, -9.0, 9.0, np.nan]), 0.0, 1.0)
    assert found.tolist() == [0, (STEPS - 1) // 2, STEPS - 1, 0, STEPS - 1, MISSING]
    assert len(palette()) == 256


def test_a_png_holds_its_pixels():
    raw = png_bytes(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.uint8), [(1, 2, 3), (4, 5, 6), (7, 8, 9)], clear=2)
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        content = raw[at + 8 : at + 8 + size]
        assert struct.unpack(">I", raw[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + content)
        chunks[kind], at = content, at + 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (3, 2)
    assert chunks[b"PLTE"] == bytes(range(1, 10))
    assert chunks[b"tRNS"] == bytes([255, 255, 0])
    assert zlib.decompress(chunks[b"IDAT"]) == bytes([0, 0, 1, 2, 0, 2, 1, 0])


def test_each_column_is_seen_from_its_own_mean():
    scores = np.array([[9.0, 0.2, 0.9], [0.4, 9.0, 0.9], [0.6, 0.4, np.nan]])
    np.testing.assert_allclose(
        against_usual(scores), [[np.nan, -1, np.nan], [-1, np.nan, np.nan], [1, 1, np.nan]], atol=1e-9
    )


def test_the_cells_of_a_planted_matrix_stand_in_cluster_order(plant):
    model = plant(tasks=4, clusters=2, names=("d", "c", "b", "a"))
    maps = {heat.name: heat for heat in heat_maps(model.origin)}
    assert maps["transfer"].names == ("c", "d", "a", "b")
    heat = maps["similarity"]
    np.testing.assert_array_equal(heat.values[0], model.similarity.low_rank[1][[1, 0, 3, 2]])
    svg = heat_map_svg(heat)
    colour = as_hex(palette()[places(heat.values, heat.low, heat.high)[0, 3]])
    said = f"{model.similarity.low_rank[1, 2]:.3f}"
    assert f'<path d="M3 0h1v1h-1z" fill="{colour}"><title>c · b: {said}</title></path>' in svg
    assert svg.count("h1v1h-1z") == 16
    assert heat_map_png(heat).startswith(b"\x89PNG")


def test_pairs_are_those_of_the_filter_and_unknown_ones_stay_open(plant):
    origin = plant(tasks=12, clusters=3, share=0.7).origin
    heat = next(heat for heat in heat_maps(origin) if heat.name == "pairs")
    svg = heat_map_svg(heat)
    assert 0 < np.isnan(heat.values).sum() < heat.values.size
    assert svg.count("h1v1h-1z") == np.isfinite(heat.values).sum()
    assert svg.count(": alike</title>") == (heat.values == 1).sum()


def similarity_of(low_rank):
    names = tuple(f"t{place}" for place in range(len(low_rank)))
    return Similarity(names, low_rank, np.zeros(low_rank.shape), sparsity=0.2, steps=1, gap=0.0)


def test_tasks_whose_distances_fit_into_a_plane_get_these_distances():
    points = np.random.default_rng(0).uniform(0, 0.6, (12, 2))
    similarity = similarity_of(1 - squareform(pdist(points)))
    found = place_tasks(similarity)
    np.testing.assert_allclose(pdist(found), pdist(points), atol=2e-3)
    assert agreement(found, similarity) > 0.999


def test_tasks_of_a_cluster_stand_together_and_no_two_marks_overlap():
    labels = np.arange(48) // 8
    similarity = similarity_of(np.equal.outer(labels, labels).astype(float))  # on one spot, were they not pushed
    places = fit_into(place_tasks(similarity), 400.0, 400.0, 20.0)
    apart = squareform(pdist(places))
    assert apart[~np.eye(48, dtype=bool)].min() >= 20.0
    nearest = np.where(np.eye(48, dtype=bool), np.inf, apart).argmin(axis=1)
    assert (labels[nearest] == labels).all()
    assert places.min() >= 0
    assert places.max() <= 400


@pytest.mark.parametrize("size", [1, 2, 3, 450])
def test_any_number_of_tasks_has_places_and_twice_the_same(size):
    low_rank = np.random.default_rng(1).uniform(0, 1, (size, size))
    similarity = similarity_of((low_rank + low_rank.T) / 2)
    found = fit_into(place_tasks(similarity), 400.0, 300.0, 4.0)
    assert found.shape == (size, 2)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, fit_into(place_tasks(similarity), 400.0, 300.0, 4.0))


def test_the_shortest_tree_joins_neighbours():
    assert sorted(map(sorted, tree(np.array([[0.0, 0.0], [5.0, 0.0], [2.0, 0.0]])).tolist())) == [[0, 2], [1, 2]]


def test_white_can_be_read_on_the_colours_of_kinds_and_no_two_are_the_same():
    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], light))

    colours = distinct(24)
    assert len(set(colours)) == 24
    assert min(1.05 / (luminance(colour) + 0.05) for colour in colours) > 3.5


def test_the_map_has_a_mark_for_each_task_with_its_cluster_and_a_row_of_the_key_for_each_family(plant):
    origin = plant(tasks=12, clusters=3).origin
    svg = task_map_svg(task_map(origin))
    assert svg.count(", cluster-2</title>") == 4
    assert svg.count("<circle") == 12 + 3
    assert svg.count('class="link"') == 3
    many = {name: f"family {place}" for place, name in enumerate(origin.clusters.names)}
    drawn = task_map(plant(tasks=30, clusters=3).origin, {f"books.t{n}": f"f{n}" for n in range(30)} | many)
    assert drawn.by_family
    assert task_map_svg(drawn).count("no family named</text>") == 1
