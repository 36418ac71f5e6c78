"""A visitor of the pages, without a browser: follows links, fills in forms with the fields that they carry."""

import html
import re

from starlette.testclient import TestClient


class Visitor:
    """Somebody with cookies; `last` is the page that was seen last."""

    def __init__(self, app):
        self.client = TestClient(app, raise_server_exceptions=False)
        self.last = None

    def get(self, address):
        self.last = self.client.get(address)
        return self.last

    def post(self, address, *, carry=True, file=None, **fields):
        """Send a form as the last page would, with its hidden fields that every form has."""
        if carry:
            fields = {name: hidden(self.last.text, name) for name in ("csrf", "once")} | fields
        fields = {name: value for name, value in fields.items() if value is not None}
        files = {"file": file} if file else None
        self.last = self.client.post(address, data=fields, files=files)
        return self.last

    def sign_in(self, key):
        self.get("/sign-in")
        return self.post("/sign-in", key=key)

    def create(
        self, name="home", pasted="turn on the lamp\tlamp\nlamp on\tlamp\nplay jazz\tmusic\nput on music\tmusic", **more
    ):
        """Make a classifier; gives its address."""
        self.get("/classifiers/new")
        self.post("/classifiers", name=name, pasted=pasted, **more)
        assert self.last.status_code == 200, words(self.last)
        return self.last.url.path


def hidden(page, name):
    """The value of the first hidden field of this name; None where there is none."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    return html.unescape(found[1]) if found else None


def words(response):
    """What the main part of a page says, without its markup."""
    main = response.text.partition("<main")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())
