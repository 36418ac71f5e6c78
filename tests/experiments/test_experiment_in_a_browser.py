"""The page of an experiment in headless Chromium with the network cut."""

import pytest
from experiments.report.writing import write_report

from browsing import CHROMIUM, open_browser, problems_of, visit

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def written(experiment, tmp_path):
    write_report(experiment[0], tmp_path / "page.html")
    return tmp_path / "page.html"


def test_the_page_asks_for_nothing_and_fits(browser, written):
    assert problems_of(browser, written, title="RobustTC-FSL on amazon") == []


def test_a_click_on_a_head_sorts(browser, written):
    page, heard = visit(browser, written, width=1280)
    first = "document.querySelector('table.methods tbody b').textContent"
    assert page.evaluate(first) == "RobustTC-FSL"
    head = page.locator("table.methods").first.locator("th button", has_text="accuracy, %").first
    head.click()
    head.click()
    assert page.evaluate(first) == "single-task fastText"
    assert heard == []
    page.context.close()
