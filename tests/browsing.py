"""Pages in headless Chromium with the network cut."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]


@contextmanager
def open_browser():
    """A browser without a screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
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


def problems_of(browser, path, *, title):
    """On a telephone and on a desk: requests, complaints, a page wider than the screen, a style not in force."""
    found = []
    for width in (390, 1280):
        page, heard = visit(browser, path, width=width)
        found += heard
        seen = {
            "title": page.title() == title,
            "fits": page.evaluate("document.documentElement.scrollWidth") <= width,
            "style": page.evaluate("getComputedStyle(document.body).maxWidth") == "1180px",
        }
        found += [f"{what} at {width}" for what, fine in seen.items() if not fine]
        page.context.close()
    return found
