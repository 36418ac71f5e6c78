"""The pages in headless Chromium: all steps of a client with and without script, hostile texts, a keyboard, a phone."""

import json
import re

import pytest
from tests.conftest import LAMPS, MUSIC
from tests.service.conftest import make_key
from tests.service.server import listening

from browsing import CHROMIUM, open_browser
from manymetrics.service.http import create_app
from manymetrics.service.settings import Settings

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

TEXTS = {"lamp": LAMPS[:4], "music": MUSIC[:4]}
EXAMPLES = "".join(f"{text}\t{label}\n" for label, texts in TEXTS.items() for text in texts)
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "<base href=//evil.example>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=//evil.example><input name=csrf>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
PAGES = ("", "/examples", "/check", "/suggestions", "/versions", "/settings")
OTHER_PAGES = ("/classifiers", "/classifiers/new")


@pytest.fixture(scope="module")
def server(model_folder, tmp_path_factory):
    """The address of a service, and the service."""
    database = f"sqlite:///{tmp_path_factory.mktemp('service')}/service.db"
    app = create_app(
        Settings(database=database, model=model_folder, remember_keys=0, model_check=0, secure_cookies=False)
    )
    with listening(app) as address:
        yield address, app.state.service


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def sign_in(browser, server):
    """Opens a page as a tenant who is signed in; `page.complaints` collects errors, dialogs and foreign requests."""
    address, service = server
    contexts = []

    def make(tenant, *, script=True, **options):
        key = make_key(service, tenant, scopes=("read", "write", "operate"))
        context = browser.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("dialog", lambda dialog: (page.complaints.append("dialog"), dialog.dismiss()))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(address) or page.complaints.append(sent.url[:60]))
        page.goto(address)
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        return page

    yield make
    for context in contexts:
        context.close()


def create(page, name, pasted):
    """Create a classifier; returns its address."""
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="New").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Paste examples").fill(pasted)
    page.get_by_role("button", name="Create classifier").click()
    page.wait_for_url(re.compile(r"/classifiers/cls_\w+"))
    return page.url.partition("?")[0]


def all_pages(home):
    """The addresses of all pages of a classifier, and of the other pages."""
    root = home.partition("/classifiers")[0]
    return [f"{home}{page}" for page in PAGES] + [f"{root}{page}" for page in OTHER_PAGES]


def open_tab(page, name):
    page.get_by_role("navigation", name="Classifier").get_by_role("link", name=name).click()


def classify(page, text):
    """Try a text on the page of a classifier; returns the label, or None if the text is rejected."""
    page.get_by_label("Try a text").fill(text)
    page.get_by_role("button", name="Classify").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    return predicted(page)


def predicted(page):
    labels = page.locator(".result bdi")
    return labels.inner_text() if labels.count() else None


def suggest(page, texts):
    page.get_by_label("One text per line").fill("\n".join(texts))
    page.get_by_role("button", name="Suggest texts to label").click()
    page.get_by_role("heading", name="Label these next").wait_for()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_client_can_do_everything(sign_in, script):
    page = sign_in(f"client-{script}", script=script)
    create(page, "home", EXAMPLES)
    assert classify(page, "put the lamp on") == "lamp"
    assert page.locator(".weights tbody tr").count() >= 1
    assert page.get_by_label("Text of near example 1").input_value()

    page.get_by_label("Right label").fill("light")
    page.get_by_role("button", name="Add as an example").click()
    page.locator(".change").wait_for()
    assert "Was lamp" in page.locator(".change").inner_text()
    assert predicted(page) == "light"

    assert page.get_by_label("Label of near example 1").input_value() == "light"
    page.get_by_label("Label of near example 1").fill("lamp")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Corrected.").wait_for()
    assert predicted(page) == "lamp"
    assert "Version 3" in page.locator(".facts").inner_text()

    open_tab(page, "Label next")
    suggest(page, ["a song for me", "the hall is dark", "what is the time"])
    page.get_by_label("Label of text 1").fill("music")
    page.get_by_role("button", name="Add the labelled texts").click()
    page.get_by_text("1 added: version 4.").wait_for()

    open_tab(page, "Versions")
    assert page.locator("tbody tr").count() == 4
    page.get_by_role("button", name="Roll back to version 1").click()
    page.get_by_text("Rolled back.").wait_for()
    assert "Version 5 · 8 examples of 2 labels" in page.locator(".facts").inner_text()

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    page.go_back()
    page.reload()
    page.get_by_role("button", name="Sign in").wait_for()
    assert page.complaints == []


def test_the_keyboard_is_enough(sign_in):
    page = sign_in("keyboard")
    create(page, "home", EXAMPLES)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.get_by_label("Try a text").focus()
    page.keyboard.type("play jazz")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert page.evaluate("document.activeElement.id") == "answer"  # where a screen reader continues
    assert page.complaints == []


def test_hostile_names_labels_and_texts_are_only_shown(sign_in):
    page = sign_in("<img src=x onerror=alert(1)>")
    lines = [json.dumps({"text": f"{text} {number}", "label": text}) for text in HOSTILE for number in (1, 2)]
    home = create(page, HOSTILE[0], "\n".join(lines))
    for address in all_pages(home):
        page.goto(address)
        assert page.locator("script:not([src])").count() == 0
        assert page.locator("base, iframe, style, main img").count() == 0
        assert page.evaluate("[...document.forms].every(form => form.action.startsWith(location.origin))")
        assert page.locator("h1").first.is_visible()
    for text in HOSTILE:
        page.goto(home)
        classify(page, text)
        assert page.get_by_label("Try a text").input_value() == text
        assert page.locator("script:not([src])").count() == 0
    assert "49" not in page.locator("main").inner_text()
    page.goto(f"{home}/suggestions")
    suggest(page, HOSTILE)
    assert page.complaints == []


def test_no_page_is_wider_than_a_phone(sign_in):
    page = sign_in("narrow", viewport={"width": 390, "height": 800})
    home = create(page, "n" * 60, EXAMPLES + f"{'w' * 300}\t{'l' * 100}\n")
    widths = {}
    for address in all_pages(home):
        page.goto(address)
        widths[address] = page.evaluate("document.documentElement.scrollWidth")
    page.goto(home)
    classify(page, "put the lamp on")
    widths["answer"] = page.evaluate("document.documentElement.scrollWidth")
    assert {address: width for address, width in widths.items() if width > 390} == {}
