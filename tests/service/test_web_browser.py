"""The pages in headless Chromium: the whole way of a client, with and without script; hostile texts; accessibility."""

import contextlib
import json
import re
import shutil
import subprocess
import tarfile
import threading
import time

import pytest
import uvicorn

from browsing import CHROMIUM, open_browser
from manymetrics.service.api import create_app
from manymetrics.service.settings import Settings

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

EXAMPLES = "".join(
    f"{text}\t{label}\n"
    for label, texts in {
        "lamp": ("turn on the lamp", "lamp on please", "switch the lamp on now", "light up the hall"),
        "music": ("play some jazz", "put on music", "start the song again", "music in the kitchen please"),
    }.items()
    for text in texts
)
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=//evil.example><input name=csrf>",
    "\u202eevil\u2066",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
PAGES = ("", "/examples", "/check", "/suggestions", "/versions", "/settings")
SERIOUS = ("serious", "critical")


@contextlib.contextmanager
def serving(app):
    """The app on a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def place(model_folder, tmp_path_factory):
    """The address of a service, and the service."""
    database = f"sqlite:///{tmp_path_factory.mktemp('service')}/service.db"
    app = create_app(
        Settings(database=database, model=model_folder, remember_keys=0, model_check=0, secure_cookies=False)
    )
    with serving(app) as address:
        yield address, app.state.service


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def sign_in(browser, place):
    """A page of somebody who has just signed in; all that its browser complains about is kept in `heard`."""
    address, service = place
    contexts = []

    def make(tenant, *, script=True, scopes=("read", "write", "operate"), **options):
        known = {one.name: one.id for one in service.tenants.list()}
        key = service.tenants.create_key(known.get(tenant) or service.tenants.create(tenant).id, scopes=scopes)
        context = browser.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        page = context.new_page()
        page.heard = []
        page.on("dialog", lambda dialog: (page.heard.append("dialog"), dialog.dismiss()))
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda problem: page.heard.append(str(problem)))
        page.on("request", lambda one: one.url.startswith(address) or page.heard.append(one.url[:60]))
        page.goto(address)
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        return page

    yield make
    for context in contexts:
        context.close()


def create(page, name, pasted):
    """Make a classifier; gives its address."""
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="New").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Paste examples").fill(pasted)
    page.get_by_role("button", name="Make the classifier").click()
    page.wait_for_url(re.compile(r"/classifiers/cls_\w+"))
    return page.url.partition("?")[0]


def all_pages(home):
    """The addresses of a classifier's pages, of the list, of the page that makes one, and of the operator's."""
    root = home.partition("/classifiers")[0]
    return [
        *(f"{home}{one}" for one in PAGES),
        *(f"{root}/{one}" for one in ("classifiers", "classifiers/new", "operator")),
    ]


def answer_of(page):
    """The label of the answer that is shown."""
    return page.locator(".result bdi").inner_text()


def tab(page, name):
    page.get_by_role("navigation", name="Classifier").get_by_role("link", name=name).click()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_client_goes_the_whole_way(sign_in, script):
    page = sign_in(f"way-{script}", script=script)
    create(page, "home", EXAMPLES)
    page.get_by_label("Try a text").fill("put the lamp on")
    page.get_by_role("button", name="Answer").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert answer_of(page) == "lamp"
    assert page.locator(".weights tbody tr").count() >= 1
    assert page.get_by_label("Text of near example 1").input_value()

    page.get_by_label("Right label").fill("light")
    page.get_by_role("button", name="Add as an example").click()
    page.locator(".change").wait_for()
    assert "Was lamp" in page.locator(".change").inner_text()
    assert answer_of(page) == "light"

    assert page.get_by_label("Label of near example 1").input_value() == "light"
    page.get_by_label("Label of near example 1").fill("lamp")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Corrected.").wait_for()
    assert answer_of(page) == "lamp"
    assert "Version 3" in page.locator(".facts").inner_text()

    tab(page, "Label next")
    page.get_by_label("One a line").fill("a song for me\nthe hall is dark\nwhat is the time\n")
    page.get_by_role("button", name="Which to label next?").click()
    page.get_by_role("heading", name="Label these next").wait_for()
    page.get_by_label("Label of text 1").fill("music")
    page.get_by_role("button", name="Add those with a label").click()
    page.get_by_text("1 added: version 4.").wait_for()

    tab(page, "Versions")
    assert page.locator(".line circle").count() == 4
    page.get_by_role("button", name="Roll back to version 1").click()
    page.get_by_text("Rolled back.").wait_for()
    assert "Version 5 · 8 examples of 2 labels" in page.locator(".facts").inner_text()

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    page.go_back()
    page.reload()
    page.get_by_role("button", name="Sign in").wait_for()
    assert page.heard == []


def test_the_keyboard_alone_is_enough(sign_in):
    page = sign_in("keys")
    create(page, "home", EXAMPLES)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.get_by_label("Try a text").focus()
    page.keyboard.type("play jazz")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert page.evaluate("document.activeElement.id") == "answer"  # so that a screen reader goes on from there
    assert page.heard == []


def test_hostile_names_labels_and_texts_are_only_shown(sign_in):
    page = sign_in("<img src=x onerror=alert(1)>")
    lines = [json.dumps({"text": f"{one} {number}", "label": one}) for one in HOSTILE for number in (1, 2)]
    home = create(page, HOSTILE[0], "\n".join(lines))
    for address in all_pages(home):
        page.goto(address)
        assert page.locator("script:not([src])").count() == 0
        assert page.locator("base, iframe, style, main img").count() == 0
        assert page.evaluate("[...document.forms].every(one => one.action.startsWith(location.origin))")
        assert page.locator("h1").first.is_visible()
    for one in HOSTILE:
        page.goto(home)
        page.get_by_label("Try a text").fill(one)
        page.get_by_role("button", name="Answer").click()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert page.get_by_label("Try a text").input_value() == one
        assert page.locator("script:not([src])").count() == 0
    assert "49" not in page.locator("main").inner_text()
    page.goto(f"{home}/suggestions")
    page.get_by_label("One a line").fill("\n".join(HOSTILE))
    page.get_by_role("button", name="Which to label next?").click()
    page.get_by_role("heading", name="Label these next").wait_for()
    assert page.heard == []


def test_no_page_is_wider_than_a_telephone(sign_in):
    page = sign_in("narrow", viewport={"width": 390, "height": 800})
    home = create(page, "n" * 60, EXAMPLES + f"{'w' * 300}\t{'l' * 100}\n")
    wide = []
    for address in all_pages(home):
        page.goto(address)
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(address)
    assert wide == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, which the package does not carry."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm on this machine to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(["npm", "pack", "axe-core", "--silent"], cwd=folder, capture_output=True, check=False)
    packed = next(iter(folder.glob("*.tgz")), None)
    if done.returncode or packed is None:
        pytest.skip("npm cannot fetch axe-core on this machine")
    with tarfile.open(packed) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(sign_in, axe, scheme):
    page = sign_in(f"axe-{scheme}", color_scheme=scheme, bypass_csp=True)
    found = {}

    def look(name):
        page.evaluate(axe)
        ran = page.evaluate("axe.run()")
        bad = [
            f"{one['id']}: {[node['html'][:120] for node in one['nodes']][:3]}"
            for one in ran["violations"]
            if one["impact"] in SERIOUS
        ]
        assert ran["passes"], "axe looked at nothing"
        found.update({name: bad} if bad else {})

    look("empty list")
    home = create(page, "home", EXAMPLES)
    address = home.partition("/classifiers")[0]
    for tail in PAGES:
        page.goto(f"{home}{tail}")
        look(tail or "try")
    page.goto(home)
    page.get_by_label("Try a text").fill("put the lamp on")
    page.get_by_role("button", name="Answer").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    look("answer")
    page.goto(f"{home}/suggestions")
    page.get_by_label("One a line").fill("a song\nthe lamp")
    page.get_by_role("button", name="Which to label next?").click()
    page.get_by_role("heading", name="Label these next").wait_for()
    look("suggested")
    for tail in ("/classifiers", "/classifiers/new", "/operator", "/classifiers/cls_00"):
        page.goto(f"{address}{tail}")
        look(tail)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    look("sign in")
    assert found == {}
