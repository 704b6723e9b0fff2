"""The OpenAPI document matches the server, checked with generated requests."""

from __future__ import annotations

import json
import os
import runpy
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.dashboards import RunningDashboard

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = 300 if os.environ.get("HERMES_CAMPAIGN") == "full" else 6
STREAM = "/api/live"  # a stream has no end to wait for
DOCUMENT = json.loads((REFERENCE / "dashboard.openapi.json").read_text("utf-8"))
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path != STREAM
]


@pytest.fixture(scope="session")
def operations() -> dict[str, Any]:
    """The operations by method and path."""
    import schemathesis  # noqa: PLC0415 - one of the test processes needs it

    schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path=STREAM)
    return {each.ok().label: each.ok() for each in schema.get_all_operations()}


def authorization(served: RunningDashboard) -> dict[str, str]:
    """The authorization header."""
    return {"Authorization": served.client.headers["Authorization"]}


# Schemathesis' own parametrization gives all operations the same test id under pytest 9.2, and
# of tests with the same id pytest-xdist runs one.
@pytest.mark.parametrize("operation", OPERATIONS)
def test_declared_input_gets_a_declared_response(
    operation: str, operations: dict[str, Any], served: RunningDashboard
) -> None:
    from schemathesis.specs.openapi.checks import (  # noqa: PLC0415 - as above
        positive_data_acceptance,
    )

    @given(case=operations[operation].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.call_and_validate(
            base_url=served.url,
            headers=authorization(served),
            excluded_checks=[positive_data_acceptance],
            timeout=PATIENCE_SECONDS,
        )

    check()


def test_every_declared_operation_is_checked(operations: dict[str, Any]) -> None:
    assert sorted(operations) == sorted(OPERATIONS)


def test_the_reference_matches_the_code() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "dashboard_reference.py"))
    document = tool["description"]()
    page = REFERENCE / "dashboard-api.md"
    assert tool["document"](document) == (REFERENCE / "dashboard.openapi.json").read_text()
    assert tool["page"](page.read_text(), document) == page.read_text()


def test_the_document_is_built_in_a_worker_thread(served: RunningDashboard) -> None:
    threads: list[str] = []
    openapi = served.app.openapi

    def recorded_openapi() -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return openapi()

    served.app.openapi = recorded_openapi  # type: ignore[method-assign]
    document = served.client.get("/openapi.json")
    assert "/api/sessions" in document.json()["paths"]
    assert served.client.get("/openapi.json").json() == document.json()
    assert served.anonymous.get("/openapi.json").status_code == 401
    assert all("worker" in maker for maker in threads)
    assert openapi() is openapi()
