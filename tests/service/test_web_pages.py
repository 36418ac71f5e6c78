"""The pages without a browser: what they show, what they change, and what they refuse."""

import pytest
from tests.service.conftest import make_key, on_sqlite
from tests.service.pages import LAMPS_AND_MUSIC, Visitor, hidden, shows, words

pytestmark = on_sqlite
PAGES = ("", "/examples", "/check", "/suggestions", "/versions", "/settings")
FORMS = ("/try", "/examples", "/more", "/check", "/suggestions", "/labels", "/versions", "/settings", "/delete")


@pytest.fixture
def sign_in(app, service):
    """Returns a visitor who is signed in as the tenant with this name."""

    def make(name="acme", scopes=("read", "write")):
        visitor = Visitor(app)
        visitor.sign_in(make_key(service, name, scopes=scopes))
        return visitor

    return make


@pytest.fixture
def visitor(sign_in):
    return sign_in()


@pytest.fixture
def home(visitor):
    """The address of a classifier with the labels lamp and music."""
    return visitor.create()


def first_example(visitor, home):
    return hidden(visitor.get(f"{home}/examples").text, "example")


def test_pages_load_and_run_only_what_the_service_serves(visitor, home):
    for address in ("/classifiers", *(f"{home}{page}" for page in PAGES)):
        response = visitor.get(address)
        policy = response.headers["content-security-policy"]
        assert ("default-src 'none'" in policy, "frame-ancestors 'none'" in policy, "unsafe" in policy) == (1, 1, 0)
        assert response.headers["cache-control"] == "no-store"
        assert not any(forbidden in response.text for forbidden in (" style=", " onclick=", "<script>"))


def test_only_the_style_sheet_script_and_icon_are_served(visitor):
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        headers = visitor.get(f"/static/{name}").headers
        assert headers["content-type"].startswith(kind)
        assert "immutable" in headers["cache-control"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
    for name in ("../pages.py", "..%2fpages.py", "nothing", "page.css/x"):
        assert visitor.get(f"/static/{name}").status_code == 404


def test_pasted_examples_become_a_classifier_that_answers_at_once(visitor, home):
    shows(visitor.last, "4 examples of 2 labels")
    shows(visitor.post(f"{home}/try", text="the lamp please"), "in scope", "Metric Weight Predicts")
    assert 'value="lamp"' in visitor.last.text


def test_a_classifier_is_made_of_an_uploaded_file_whose_skipped_rows_are_counted(visitor):
    file = ("../../rows.tsv", b"a b\tx\n\ty\nc d\ty\n")
    response = visitor.send("/classifiers/new", "/classifiers", name="rows", pasted="", file=file)
    shows(response, "2 examples of 2 labels", "Rows without a text or a label were skipped: 1.")


def test_the_form_is_filled_in_again_if_its_examples_cannot_be_read(visitor):
    fields = {"name": "mine", "pasted": "a line\nanother <b>line</b>", "label_column": "two"}
    response = visitor.send("/classifiers/new", "/classifiers", **fields)
    assert response.status_code == 422
    assert all(text in response.text for text in ("another &lt;b&gt;line", 'value="mine"', 'value="two"'))
    assert not any(text in words(response) for text in ("examples.", "--"))


def test_a_form_that_is_sent_twice_is_applied_once(visitor, home):
    fields = {name: hidden(visitor.get("/classifiers/new").text, name) for name in ("csrf", "once")}
    fields["pasted"] = LAMPS_AND_MUSIC
    addresses = [visitor.post("/classifiers", carry=False, name="twice", **fields).url.path for _ in range(2)]
    assert addresses[0] == addresses[1]
    assert visitor.get("/classifiers").text.count("twice") == 1
    other = visitor.post("/classifiers", carry=False, name="another", **fields)
    assert other.status_code == 409
    page = visitor.get(f"{home}/examples")
    for _ in range(2):
        visitor.last = page
        visitor.post(f"{home}/examples", text="good night", label="sleep")
    shows(visitor.last, "Version 2 · 5 examples of 3 labels")


def test_a_text_added_while_trying_it_shows_the_answer_before_and_after(visitor, home):
    visitor.post(f"{home}/try", text="play the lamp")
    tried = {"tried": "play the lamp", "text": "play the lamp"}
    shows(visitor.post(f"{home}/examples", **tried, label="both"), "Added.", "Version 2")
    assert "both" in words(visitor.last).partition("Was ")[2]
    shows(visitor.post(f"{home}/examples", **tried, label=""), "The label is missing.", "in scope", status=422)


def test_an_example_is_edited_in_place(visitor, home):
    fields = {"example": first_example(visitor, home), "label": "light", "act": "save"}
    response = visitor.post(f"{home}/examples", text="turn on the lamp", **fields)
    shows(response, "Corrected.", "4 examples of 3 labels")
    shows(visitor.post(f"{home}/examples", text="x", **fields), "This example no longer exists.", status=404)
    # saving an unchanged example makes no version, however its lines end
    home = visitor.create(pasted='text,label\n"two\r\nlines",a\none,b\n')
    fields = {"example": first_example(visitor, home), "text": "two\r\nlines", "label": "a", "act": "save"}
    shows(visitor.post(f"{home}/examples", **fields), "Version 1")


def test_examples_are_removed_and_added_one_by_one_or_many_at_once(visitor, home):
    visitor.post(f"{home}/examples", example=first_example(visitor, home), act="remove")
    shows(visitor.last, "3 examples of 2 labels")
    shows(visitor.post(f"{home}/examples", text="what is the time", none="1"), "· 1 without a label")
    shows(visitor.post(f"{home}/more", pasted="good night\tsleep\nwake me up\tsleep\n"), "5 examples of 3 labels")


def test_lists_longer_than_a_page_have_a_next_page(visitor):
    home = visitor.create(pasted="".join(f"text {number}\t{'ab'[number % 2]}\n" for number in range(60)))
    first = visitor.get(f"{home}/examples")
    second = visitor.get(f"{home}/examples?after={first.text.partition('?after=')[2].partition(chr(34))[0]}")
    assert [page.text.count('aria-label="Text of example') for page in (first, second)] == [50, 10]
    assert "Next page" not in words(second)


@pytest.mark.parametrize(
    ("pasted", "heading"),
    [
        ("a b c\tone\na b c\ttwo\nd e f\tone\ng h i\ttwo\n", "Texts with several labels"),
        ("Good Night\tsleep\ngood  night\tsleep\nplay jazz\tmusic\nput on music\tmusic\n", "Duplicate examples"),
    ],
)
def test_a_problem_of_the_examples_is_reported_and_removed(visitor, pasted, heading):
    home = visitor.create(pasted=pasted)
    shows(visitor.get(f"{home}/check"), heading)
    example = hidden(visitor.last.text.partition(heading)[2], "example")
    response = visitor.post(f"{home}/examples", example=example, act="remove", back="check")
    shows(response, "3 examples of 2 labels")
    assert (response.url.path, heading in words(response)) == (f"{home}/check", False)


def test_a_test_set_is_evaluated_and_not_stored(visitor, home):
    response = visitor.send(f"{home}/check", f"{home}/check", pasted="turn on the lamp\tlamp\nplay jazz\tlamp\n")
    shows(response, "1 of 2 texts get the right label", "4 examples of 2 labels")
    shows(visitor.post(f"{home}/check", pasted=""), "There is nothing to read.", status=422)


def test_suggested_texts_are_labelled_and_others_suggested(visitor, home):
    page = f"{home}/suggestions"
    shows(visitor.send(page, page, texts="a song\n\n the lamp\r\na song\nthe time\n", count="3"), "Label these next")
    assert words(visitor.last).count("a song") == 3  # suggested, and in the texts of both forms
    fields = {"texts": "a song\nthe lamp\nthe time", "count": "3", "text-0": "a song", "text-1": "the time"}
    shows(visitor.post(f"{home}/labels", **fields), "No text has a label yet.", status=422)
    response = visitor.post(f"{home}/labels", **fields, **{"label-0": "music", "none-1": "1"})
    shows(response, "2 added: version 2.", "5 examples of 2 labels · 1 without a label")
    remaining = words(response).partition("Remaining texts")[2]
    assert ("the lamp" in remaining, "a song" in remaining) == (True, False)
    shows(visitor.send(page, page, texts="a lamp", count="1e9"), "Label these next")  # the number is bounded


def test_rolling_back_restores_the_earlier_examples(visitor, home):
    page = f"{home}/versions"
    for version, status in (("NaN", 400), ("1e999", 400), ("-5", 404), ("1e9", 404)):
        shows(visitor.send(page, page, version=version), status=status)
    visitor.send(f"{home}/examples", f"{home}/examples", text="good night", label="sleep")
    shows(visitor.get(page), "examples changed")
    shows(visitor.post(page, version="1"), "Rolled back.", "Version 3 · 4 examples of 2 labels")


def test_only_settings_that_differ_are_changed(visitor, home):
    page = f"{home}/settings"
    shows(visitor.send(page, page, name="house", reject="0", margin="0", shared="1"), "house Version 1")
    shows(visitor.post(page, name="house", reject="99,5", margin="0"), "Version 2")
    assert 'value="99.5"' in visitor.last.text
    shows(visitor.post(page, name="house", reject="many"), status=400)
    shows(visitor.send(page, page, name="house", reject="101"), status=422)


def test_an_outdated_settings_page_cannot_undo_opting_out(visitor, service, caller, home):
    classifier, page = home.rpartition("/")[2], f"{home}/settings"
    outdated = visitor.send(page, page, name="home", shared="1")
    service.classifiers.update(caller, classifier, values={"shared": False})
    for more in ({"reject": "0"}, {"reject": "50"}, {"tag": None}):
        visitor.last = outdated
        response = visitor.post(page, name="home", shared="1", **more)
        shows(response, "has changed since it was read", status=412)
    assert not service.classifiers.get(caller, classifier).shared


def test_a_classifier_is_deleted_only_if_that_is_confirmed(visitor, home):
    shows(visitor.send(f"{home}/settings", f"{home}/delete"), status=422)
    shows(visitor.send(f"{home}/settings", f"{home}/delete", sure="1"), "The classifier is deleted.")
    shows(visitor.get(home), status=404)


def test_the_classifier_of_another_tenant_is_not_found(visitor, home, sign_in):
    other, unknown = sign_in("globex"), f"{home.rpartition('_')[0]}_{'0' * 30}"
    fields = {"text": "x", "label": "y", "texts": "x", "pasted": "a\tb\nc\td", "version": "1", "name": "n"}
    fields |= {"sure": "1", "text-0": "x", "label-0": "y"}
    fields["csrf"] = hidden(other.get("/classifiers/new").text, "csrf")
    for page in (*PAGES, *FORMS):
        responses = [
            other.get(f"{address}{page}") if page in PAGES else other.post(f"{address}{page}", carry=False, **fields)
            for address in (home, unknown)
        ]
        assert [(response.status_code, words(response)) for response in responses] == [(404, words(other.last))] * 2
    shows(visitor.get(home), "4 examples of 2 labels")


def test_a_key_that_can_only_read_gets_no_form_that_writes(sign_in, visitor, home):
    reader = sign_in(scopes=("read",))
    writing = {f'action="{home}/{form}"' for form in ("examples", "more", "versions", "settings", "delete")}
    for page in PAGES:
        shows(reader.get(f"{home}{page}"))
        assert not writing & set(reader.last.text.replace(">", " ").split())
    shows(reader.post(f"{home}/examples", text="x", label="y"), status=403)


def test_impossible_addresses_are_not_found_and_a_page_names_its_methods(visitor):
    for address in ("/classifiers/x", "/classifiers/cls_%00", "/classifiers?after=%27", "/classifiers/a_0/none"):
        assert visitor.get(address).status_code == 404
    response = visitor.client.delete("/classifiers/new")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")


def test_control_characters_are_shown_escaped(visitor):
    visitor.create(name="a\u202eb\u2066c\x1bd grüße, שלום")
    shows(visitor.last, "a\\u202eb\\u2066c\\u001bd grüße, שלום")
