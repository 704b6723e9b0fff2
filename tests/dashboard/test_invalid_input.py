"""Invalid input is rejected with an error and never crashes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_dashboard.errors import PlainJson

if TYPE_CHECKING:
    from support.dashboards import RunningDashboard

LONE_SURROGATES = r'{"title": "\ud800", "tags": ["\udfff"], "pinned": "perhaps"}'


@pytest.mark.parametrize(
    "body", [LONE_SURROGATES, "[]", "null", "{", '{"title": 7}', '{"tags": {"a": 1}}', "\x00"]
)
def test_an_invalid_change_is_rejected(served: RunningDashboard, body: str) -> None:
    response = served.client.patch(
        "/api/sessions/nobody",
        content=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 422
    assert response.json()["detail"]


PYDANTIC_WORDS = ("Input should", "should have", "Field required", "String should", "Value error")


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "message"),
    [
        ("GET", "/api/sessions/one/messages?around=-5", None, "around", "Must be at least 0."),
        ("GET", "/api/sessions?limit=many", None, "limit", "Must be a whole number."),
        ("GET", "/api/logs/hermes.log?limit=5000", None, "limit", "Must be at most 1,000."),
        ("PATCH", "/api/sessions/one", {"title": "x" * 1001}, "title", "At most 1,000 characters."),
        ("PATCH", "/api/sessions/one", {"pinned": "perhaps"}, "pinned", "Must be true or false."),
        ("POST", "/api/sessions/bulk", {"ids": 7}, "ids", "Must be a list."),
        ("POST", "/api/sessions/bulk", {}, "ids", "A value is required."),
    ],
)
def test_an_invalid_value_is_explained_in_plain_words(
    served: RunningDashboard, method: str, path: str, body: object, field: str, message: str
) -> None:
    response = served.client.request(method, path, json=body)
    assert response.status_code == 422
    assert not any(word in response.text for word in PYDANTIC_WORDS), response.text
    found = {each["loc"][-1]: each["msg"] for each in response.json()["detail"]}
    assert found[field] == message


@pytest.mark.parametrize("other", ["text", "\ud800", 2**70])
def test_a_number_that_is_not_finite_is_null_beside_any_other_value(other: str | int) -> None:
    body = PlainJson({"cost": [float("nan"), float("inf")], "other": other}).body
    refused = pytest.fail  # JSON has no NaN: browsers refuse the response
    assert json.loads(body, parse_constant=refused) == {"cost": [None, None], "other": other}
