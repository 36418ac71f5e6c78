"""Pages in headless Chromium, without a network."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]


@contextmanager
def open_browser():
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def visit(browser, path, *, width):
    """The page of a file, and its messages, errors and requests."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, events = context.new_page(), []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda request: events.append(request.url[:99]))
    page.goto(path.as_uri())
    page.wait_for_load_state()
    return page, [event for event in events if event != path.as_uri() and not event.startswith("data:image/png")]


def problems_of(browser, path, *, title):
    """Requests, errors, a page wider than the screen, or a missing style, on a phone and on a desktop."""
    problems = []
    for width in (390, 1280):
        page, events = visit(browser, path, width=width)
        checks = {
            "title": page.title() == title,
            "width": page.evaluate("document.documentElement.scrollWidth") <= width,
            "style": page.evaluate("getComputedStyle(document.body).maxWidth") == "1180px",
        }
        problems += events + [f"{name} at {width}" for name, passed in checks.items() if not passed]
        page.context.close()
    return problems
