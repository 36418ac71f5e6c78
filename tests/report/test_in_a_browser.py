"""The page of a model in headless Chromium without a network."""

import pytest

import manymetrics as mm
from browsing import CHROMIUM, open_browser, problems_of, visit
from manymetrics.model import save_origin

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
NASTY = "<script>document.title = 'broken'</script>"
EDGES = """() => [...document.querySelectorAll('svg.map, svg.key, svg.map text, svg.key text, svg.heat text')].map(
    shape => { const box = shape.getBoundingClientRect(); return [box.left, box.right] })"""
CLIPPED = """() => [...document.querySelectorAll('#map, #map *')].filter(shape =>
    shape.scrollWidth > shape.clientWidth + 1 && getComputedStyle(shape).overflowX != 'visible').length"""


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


def write_page(model, tmp_path):
    save_origin(model.origin, tmp_path / "run" / "learned")
    mm.write_report(tmp_path / "run", tmp_path / "page.html")
    return tmp_path / "page.html"


def test_the_page_requests_nothing_and_fits_the_screen_with_any_task_names(browser, plant, tmp_path):
    names = [f"{NASTY} {number} {'long' * 9}" for number in range(90)]
    path = write_page(plant(tasks=90, clusters=7, names=names), tmp_path)
    assert problems_of(browser, path, title="8 metrics from 90 tasks") == []


@pytest.mark.parametrize("width", [390, 1280])
def test_figures_show_the_names_of_the_tasks_and_nothing_is_clipped(browser, plant, tmp_path, width):
    page, _ = visit(browser, write_page(plant(tasks=16, clusters=4), tmp_path), width=width)
    assert all(0 <= left < right <= width for left, right in page.evaluate(EDGES))
    assert page.evaluate("document.querySelectorAll('text.task-name').length") == 16
    assert page.evaluate(CLIPPED) == 0
    page.context.close()


def test_the_check_reports_requests_and_console_errors(browser, tmp_path):
    (tmp_path / "bad.html").write_text("<img src='https://example.org/x.png'><script>console.error('ouch')</script>")
    page, messages = visit(browser, tmp_path / "bad.html", width=390)
    assert {"https://example.org/x.png", "ouch"} <= set(messages)
    page.context.close()
