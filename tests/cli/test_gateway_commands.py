"""`hermes gateway`, as it is used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def hermes_after(hermes: Any) -> Iterator[Any]:
    yield hermes
    hermes("gateway", "stop")


def test_it_is_started_told_about_and_stopped(hermes_after: Any) -> None:
    hermes = hermes_after
    assert "No gateway runs" in hermes("gateway", "status").out
    assert "It runs" in hermes("gateway", "start").out
    told = json.loads(hermes("gateway", "status", "--json").out)
    assert (told["running"], told["gateway_state"], told["waiting"]) == (True, "running", 0)
    assert list(told["platforms"]) == ["local"]
    for action in ("start", "run"):
        again = hermes("gateway", action)
        assert again.code == 2
        assert "runs already" in again.err
    assert "has ended" in hermes("gateway", "stop").out
    assert "No gateway runs" in hermes("gateway", "stop").out
    assert json.loads(hermes("gateway", "status", "--json").out)["gateway_state"] == "stopped"
