"""Input that no page would send: refused in words, and never a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.dashboards import Served

HALF = r'{"title": "\ud800", "tags": ["\udfff"], "pinned": "perhaps"}'


@pytest.mark.parametrize(
    "body", [HALF, "[]", "null", "{", '{"title": 7}', '{"tags": {"a": 1}}', "\x00"]
)
def test_a_change_that_makes_no_sense_is_refused(served: Served, body: str) -> None:
    answer = served.client.patch(
        "/api/sessions/nobody",
        content=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 422
    assert answer.json()["detail"]
