"""Invalid input is rejected with an error and never crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
