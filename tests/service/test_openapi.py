"""The OpenAPI document says what the service does: schemathesis looks for answers that it does not name."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.service.conftest import create, on_sqlite

pytestmark = on_sqlite
EXAMPLES_EACH = 40
# A document cannot say that two labels are needed, so some of what it allows is refused with 422.
LEFT_OUT = [positive_data_acceptance]


@pytest.fixture
def app(make_app):
    return make_app(rate=1e9, burst=1e9)  # no response is to be a 429


def test_no_request_fails_the_service_or_gets_an_answer_that_is_not_documented(app, make_client):
    load_all_checks()
    client = make_client(scopes=("read", "write", "operate"))
    own = create(client)["id"]
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    headers = {"Authorization": client.headers["Authorization"]}
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES_EACH, deadline=None, database=None, derandomize=True,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy())
        def run(case):
            if "classifier_id" in (case.path_parameters or {}) and case.method != "DELETE":
                case.path_parameters["classifier_id"] = own
            case.call_and_validate(headers=headers, excluded_checks=LEFT_OUT)

        run()
        tried.add(operation.label)
    assert len(tried) >= 16


def test_the_document_and_its_page_need_no_network(app, make_client):
    client = make_client()
    document = client.get("/openapi.json").json()
    page = client.get("/docs").text
    assert "http:" not in page
    assert "https:" not in page
    assert all(path in page for path in document["paths"])
