"""The page of a model in headless Chromium with the network cut."""

import pytest

import manymetrics as mm
from browsing import CHROMIUM, open_browser, problems_of, visit
from manymetrics.model import save_origin

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
NASTY = "<script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


def test_the_page_asks_for_nothing_and_fits_whatever_the_tasks_are_called(browser, plant, tmp_path):
    names = [f"{NASTY} {number} {'long' * 9}" for number in range(90)]
    save_origin(plant(tasks=90, clusters=7, names=names).origin, tmp_path / "run" / "learned")
    mm.write_report(tmp_path / "run", tmp_path / "page.html")
    assert problems_of(browser, tmp_path / "page.html", title="7 metrics from 90 tasks") == []


def test_a_page_that_asks_or_complains_would_be_found(browser, tmp_path):
    (tmp_path / "bad.html").write_text("<img src='https://example.org/x.png'><script>console.error('ouch')</script>")
    page, heard = visit(browser, tmp_path / "bad.html", width=390)
    assert "https://example.org/x.png" in heard
    assert "ouch" in heard
    page.context.close()
