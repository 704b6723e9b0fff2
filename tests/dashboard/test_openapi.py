"""What the server says of itself is true: any input it declares gets an answer it declares."""

from __future__ import annotations

import json
import os
import runpy
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.dashboards import Served

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = 300 if os.environ.get("HERMES_CAMPAIGN") == "full" else 6
ENDLESS = r"^/api/live$"  # a stream has no end to wait for

SCHEMA = schemathesis.openapi.from_dict(
    json.loads((REFERENCE / "dashboard.openapi.json").read_text("utf-8"))
).exclude(path_regex=ENDLESS)


def known(served: Served) -> dict[str, str]:
    """What lets a program in."""
    return {"Authorization": served.client.headers["Authorization"]}


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_any_input_it_declares_gets_an_answer_it_declares(case: Any, served: Served) -> None:
    case.call_and_validate(
        base_url=served.url,
        headers=known(served),
        excluded_checks=[positive_data_acceptance],
        timeout=PATIENCE_SECONDS,
    )


def test_the_reference_is_what_the_code_says() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "dashboard_reference.py"))
    found = tool["description"]()
    page = REFERENCE / "dashboard-api.md"
    assert tool["document"](found) == (REFERENCE / "dashboard.openapi.json").read_text()
    assert tool["page"](page.read_text(), found) == page.read_text()


def test_it_is_served_and_made_in_a_thread_of_its_own(served: Served) -> None:
    makers: list[str] = []
    make = served.app.openapi

    def made() -> dict[str, Any]:
        makers.append(threading.current_thread().name)
        return make()

    served.app.openapi = made  # type: ignore[method-assign]
    found = served.client.get("/openapi.json")
    assert "/api/sessions" in found.json()["paths"]
    assert served.client.get("/openapi.json").json() == found.json()
    assert served.stranger.get("/openapi.json").status_code == 401
    assert all("worker" in one for one in makers)
    assert make() is make()
