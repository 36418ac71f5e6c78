"""The page in headless Chromium with the network cut: no request, no complaint, nothing wider than the screen."""

import shutil

import pytest

import manymetrics as mm
from manymetrics.store import save_learned

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
NASTY = "<script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


def visit(browser, path, *, width):
    """The page, and all that it asked for or complained about."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda problem: heard.append(str(problem)))
    page.on("request", lambda request: heard.append(request.url[:99]))
    page.goto(path.as_uri())
    page.wait_for_load_state()
    return page, [one for one in heard if one != path.as_uri() and not one.startswith("data:image/png")]


@pytest.fixture(params=["results", "large"])
def written(request, experiment, plant, tmp_path):
    """A page of results, and one of a bank whose tasks have long and hostile names."""
    folder, _ = experiment
    if request.param == "large":
        folder = tmp_path / "large"
        save_learned(plant(tasks=90, clusters=7, names=[f"{NASTY} {n} {'long' * 9}" for n in range(90)]), folder)
    mm.write_report(folder, tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_asks_for_nothing_and_fits(browser, written, width):
    page, heard = visit(browser, written, width=width)
    assert heard == []
    assert page.title() in ("RobustTC-FSL on amazon", "7 metrics from 90 tasks")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.body).maxWidth") == "1180px"  # the style is in force
    page.context.close()


def test_a_page_that_asks_or_complains_would_be_found(browser, tmp_path):
    (tmp_path / "bad.html").write_text("<img src='https://example.org/x.png'><script>console.error('ouch')</script>")
    page, heard = visit(browser, tmp_path / "bad.html", width=390)
    assert "https://example.org/x.png" in heard
    assert "ouch" in heard
    page.context.close()


def test_a_click_on_a_head_sorts(browser, experiment, tmp_path):
    mm.write_report(experiment[0], tmp_path / "page.html")
    page, heard = visit(browser, tmp_path / "page.html", width=1280)
    first = "document.querySelector('table.methods tbody b').textContent"
    assert page.evaluate(first) == "RobustTC-FSL"
    head = page.locator("table.methods").first.locator("th button", has_text="accuracy, %").first
    head.click()
    head.click()
    assert page.evaluate(first) == "single-task fastText"
    assert heard == []
    page.context.close()
