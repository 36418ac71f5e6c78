"""A visitor of the pages without a browser: follows redirects, keeps cookies, sends forms with their hidden fields."""

import html
import re

from starlette.testclient import TestClient

LAMPS_AND_MUSIC = "turn on the lamp\tlamp\nlamp on\tlamp\nplay jazz\tmusic\nput on music\tmusic"


class Visitor:
    """A person with cookies; `last` is the last response."""

    def __init__(self, app):
        self.client = TestClient(app, raise_server_exceptions=False)
        self.last = None

    def get(self, address):
        self.last = self.client.get(address)
        return self.last

    def post(self, address, *, carry=True, file=None, **fields):
        """Send a form with the hidden fields of the last page."""
        if carry:
            fields = {name: hidden(self.last.text, name) for name in ("csrf", "once", "tag")} | fields
        fields = {name: value for name, value in fields.items() if value is not None}
        files = {"file": file} if file else None
        self.last = self.client.post(address, data=fields, files=files)
        return self.last

    def send(self, page, form, **fields):
        """Open a page and send one of its forms."""
        self.get(page)
        return self.post(form, **fields)

    def sign_in(self, key):
        return self.send("/sign-in", "/sign-in", key=key)

    def create(self, name="home", pasted=LAMPS_AND_MUSIC):
        """Create a classifier; returns its address."""
        shows(self.send("/classifiers/new", "/classifiers", name=name, pasted=pasted))
        return self.last.url.path


def hidden(page, name):
    """The value of the first hidden field with this name; None if there is none."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page)
    return html.unescape(match[1]) if match else None


def words(response):
    """The text of the main part of a page, without markup."""
    main = response.text.partition("<main")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def shows(response, *texts, status=200):
    """Require the status of a page, and texts that it shows."""
    shown = words(response)
    assert response.status_code == status, shown
    assert [text for text in texts if text not in shown] == [], shown
