"""The pages without a browser: what they show, what they change, and what they refuse."""

import pytest
from tests.service.pages import Visitor, hidden, words

from manymetrics.service.web.rendering import shown


@pytest.fixture
def database_url(tmp_path):
    return f"sqlite:///{tmp_path}/service.db"


@pytest.fixture
def sign_in(app, service):
    """A visitor who is signed in as the tenant of this name."""

    def make(name="acme", scopes=("read", "write")):
        known = {tenant.name: tenant.id for tenant in service.tenants.list()}
        tenant = known.get(name) or service.tenants.create(name).id
        visitor = Visitor(app)
        visitor.sign_in(service.tenants.create_key(tenant, scopes=scopes))
        return visitor

    return make


@pytest.fixture
def visitor(sign_in):
    return sign_in()


@pytest.fixture
def home(visitor):
    """The address of a classifier of lamps and music."""
    return visitor.create()


def test_pages_may_load_and_run_nothing_but_what_is_served_beside_them(visitor, home):
    for address in ("/classifiers", home, f"{home}/check", f"{home}/versions"):
        answer = visitor.get(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text
        assert "<script>" not in answer.text


def test_style_and_script_are_served_and_nothing_else_is(visitor):
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        answer = visitor.get(f"/static/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert "immutable" in answer.headers["cache-control"]
    for name in ("../rendering.py", "..%2frendering.py", "nothing", "page.css/x"):
        assert visitor.get(f"/static/{name}").status_code == 404


def test_a_pasted_list_becomes_a_classifier_that_answers_at_once(visitor, home):
    assert "4 examples of 2 labels" in words(visitor.last)
    visitor.post(f"{home}/try", text="the lamp please")
    said = words(visitor.last)
    assert "in scope" in said
    assert "Metric Weight Says fallback" in said  # so few examples that no metric is trusted
    assert 'value="lamp"' in visitor.last.text


def test_a_sample_needs_neither_name_nor_examples(visitor):
    visitor.get("/classifiers/new")
    answer = visitor.post("/classifiers", sample="banking-new")
    assert "25 examples of 5 labels" in words(answer)


def test_an_upload_of_any_format_is_read(visitor):
    visitor.get("/classifiers/new")
    rasa = b"nlu:\n- intent: on\n  examples: |\n    - lamp on\n    - light on\n"
    rasa += b"- intent: off\n  examples: |\n    - lamp off\n"
    answer = visitor.post("/classifiers", name="rasa", pasted="", file=("../../nlu.yml", rasa))
    assert "3 examples of 2 labels" in words(answer)


def test_what_cannot_be_read_is_told_and_kept_in_the_form(visitor):
    visitor.get("/classifiers/new")
    answer = visitor.post("/classifiers", name="mine", pasted="a line\nanother <b>line</b>")
    assert answer.status_code == 422
    assert "another &lt;b&gt;line" in answer.text
    assert 'value="mine"' in answer.text
    assert "examples." not in answer.text
    assert "--" not in words(answer)


def test_a_form_that_is_sent_twice_is_done_once(visitor):
    visitor.get("/classifiers/new")
    fields = {name: hidden(visitor.last.text, name) for name in ("csrf", "once")} | {"sample": "banking-new"}
    twice = [visitor.post("/classifiers", carry=False, **fields).url.path for _ in range(2)]
    assert twice[0] == twice[1]
    assert visitor.get("/classifiers").text.count("banking-new") == 1


def test_teaching_a_text_shows_the_answer_before_and_after(visitor, home):
    visitor.post(f"{home}/try", text="play the lamp")
    answer = visitor.post(f"{home}/examples", tried="play the lamp", text="play the lamp", label="both")
    said = words(answer)
    assert "Added." in said
    assert "Version 2" in said
    assert "Was " in said
    assert "both" in said.partition("Was ")[2]


def test_an_example_is_mended_in_place(visitor, home, service):
    visitor.get(f"{home}/examples")
    example = hidden(visitor.last.text, "example")
    answer = visitor.post(f"{home}/examples", example=example, text="turn on the lamp", label="light", act="save")
    assert "Corrected." in words(answer)
    assert "4 examples of 3 labels" in words(answer)
    assert "light" in answer.text
    gone = visitor.post(f"{home}/examples", example=example, text="x", label="light", act="save")
    assert gone.status_code == 404
    assert "There is no such example any more." in words(gone)


def test_saving_an_example_as_it_is_makes_no_version_whatever_ends_its_lines(visitor):
    home = visitor.create(pasted='text,label\n"two\r\nlines",a\none,b\n')
    visitor.get(f"{home}/examples")
    example = hidden(visitor.last.text, "example")
    answer = visitor.post(f"{home}/examples", example=example, text="two\r\nlines", label="a", act="save")
    assert "Version 1" in words(answer)


def test_an_example_is_removed_and_a_counter_example_added(visitor, home):
    visitor.get(f"{home}/examples")
    visitor.post(f"{home}/examples", example=hidden(visitor.last.text, "example"), act="remove")
    assert "3 examples of 2 labels" in words(visitor.last)
    visitor.post(f"{home}/examples", text="what is the time", none="1")
    assert "3 examples of 2 labels · 1 that fit none" in words(visitor.last)


def test_many_examples_are_added_at_once(visitor, home):
    visitor.get(f"{home}/examples")
    visitor.post(f"{home}/more", pasted="good night\tsleep\nwake me up\tsleep\n")
    assert "6 examples of 3 labels" in words(visitor.last)


def test_findings_name_a_text_with_two_labels_and_remove_one(visitor):
    home = visitor.create(pasted="a b c\tone\na b c\ttwo\nd e f\tone\ng h i\ttwo\n")
    said = words(visitor.get(f"{home}/check"))
    assert "One text, several labels" in said
    assert "Remove that of one" in said


def test_a_test_set_is_tried_and_not_kept(visitor, home):
    visitor.get(f"{home}/check")
    said = words(visitor.post(f"{home}/check", pasted="turn on the lamp\tlamp\nplay jazz\tlamp\n"))
    assert "1 of 2 texts are answered rightly" in said
    assert "4 examples of 2 labels" in said


def test_suggested_texts_are_labelled_and_the_rest_is_suggested_again(visitor, home):
    visitor.get(f"{home}/suggestions")
    said = words(visitor.post(f"{home}/suggestions", texts="a song\nthe lamp\nwhat time is it\n", count="3"))
    assert "Label these next" in said
    fields = {"texts": "a song\nthe lamp\nwhat time is it", "count": "3", "text-0": "a song", "label-0": "music"}
    said = words(visitor.post(f"{home}/labels", **fields))
    assert "1 added: version 2." in said
    left = said.partition("Texts that are left")[2]
    assert "the lamp" in left
    assert "a song" not in left


def test_rolling_back_brings_the_earlier_examples_back(visitor, home):
    visitor.get(f"{home}/examples")
    visitor.post(f"{home}/examples", text="good night", label="sleep")
    said = words(visitor.get(f"{home}/versions"))
    assert "examples changed" in said
    assert "<polyline" in visitor.last.text
    said = words(visitor.post(f"{home}/versions", version="1"))
    assert "Rolled back." in said
    assert "Version 3 · 4 examples of 2 labels" in said


def test_settings_change_what_differs(visitor, home):
    visitor.get(f"{home}/settings")
    said = words(visitor.post(f"{home}/settings", name="house", reject="0", margin="0", shared="1"))
    assert "house Version 1" in said
    visitor.post(f"{home}/settings", name="house", reject="99,5", margin="0")
    assert "Version 2" in words(visitor.last)
    assert 'value="99.5"' in visitor.last.text
    assert visitor.post(f"{home}/settings", name="house", reject="many").status_code == 400
    assert visitor.post(f"{home}/settings", name="house", reject="101").status_code == 422


def test_a_classifier_is_deleted_when_that_is_confirmed(visitor, home):
    visitor.get(f"{home}/settings")
    assert visitor.post(f"{home}/delete").status_code == 422
    visitor.get(f"{home}/settings")
    assert "The classifier is deleted." in words(visitor.post(f"{home}/delete", sure="1"))
    assert visitor.get(home).status_code == 404


def test_the_classifier_of_another_tenant_is_as_unknown_as_any(visitor, home, sign_in):
    other = sign_in("globex")
    unknown = f"{home.rpartition('_')[0]}_{'0' * 30}"
    other.get("/classifiers/new")
    for page in ("", "/examples", "/check", "/suggestions", "/versions", "/settings"):
        mine, none = (other.get(f"{base}{page}") for base in (home, unknown))
        assert (mine.status_code, words(mine)) == (404, words(none)), page
    for page in (
        "/try",
        "/examples",
        "/more",
        "/check",
        "/suggestions",
        "/labels",
        "/versions",
        "/settings",
        "/delete",
    ):
        other.get("/classifiers/new")
        fields = {"text": "x", "label": "y", "texts": "x", "pasted": "a\tb\nc\td", "version": "1", "name": "n",
                  "sure": "1", "text-0": "x", "label-0": "y"}  # fmt: skip
        token = hidden(other.last.text, "csrf")
        mine, none = (other.post(f"{base}{page}", carry=False, csrf=token, **fields) for base in (home, unknown))
        assert (mine.status_code, words(mine)) == (404, words(none)), page
    assert "4 examples of 2 labels" in words(visitor.get(home))


def test_a_key_that_reads_sees_no_form_that_writes(sign_in, visitor, home):
    reader = sign_in(scopes=("read",))
    for page in ("", "/examples", "/check", "/versions", "/settings"):
        answer = reader.get(f"{home}{page}")
        assert answer.status_code == 200
        assert not {f'action="{home}/{one}"' for one in ("examples", "more", "versions", "settings", "delete")} & set(
            answer.text.replace(">", " ").split()
        )
    assert reader.post(f"{home}/examples", text="x", label="y").status_code == 403


@pytest.mark.parametrize(
    "address", ["/classifiers/x", "/classifiers/cls_%00", "/classifiers?after=%27", "/classifiers/a_0/none"]
)
def test_addresses_that_cannot_be_are_not_found(visitor, address):
    assert visitor.get(address).status_code == 404


def test_every_number_that_is_asked_for_may_be_nonsense(visitor, home):
    for page, fields in (("versions", {"version": "NaN"}), ("versions", {"version": "1e999"})):
        visitor.get(f"{home}/versions")
        assert visitor.post(f"{home}/{page}", **fields).status_code == 400
    visitor.get(f"{home}/versions")
    assert visitor.post(f"{home}/versions", version="-5").status_code == 404
    visitor.get(f"{home}/suggestions")
    assert visitor.post(f"{home}/suggestions", texts="a lamp", count="1e9").status_code == 200


def test_a_body_that_is_too_large_is_refused_on_a_page(visitor, app):
    visitor.get("/classifiers/new")
    answer = visitor.post("/classifiers", name="x", pasted="x" * (app.state.service.settings.most_body_bytes + 1))
    assert answer.status_code == 413


def test_the_operator_sees_clusters_load_and_tenants(sign_in, visitor, home):
    operator = sign_in("ops", scopes=("operate",))
    said = words(operator.get("/operator"))
    assert "3 tasks in 2 clusters" in said
    assert "acme" in said
    assert "/classifiers/{classifier_id}" in said
    assert "data:image/png;base64," in operator.last.text
    assert "turn on the lamp" not in operator.last.text


def test_control_characters_are_made_visible():
    assert shown("a\u202eb\u2066c\x00d\x1be\tf") == "a\\u202eb\\u2066c\\u0000d\\u001be\tf"
    assert shown("grüße, שלום") == "grüße, שלום"
