"""A store and a dashboard over it, on a real server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.dashboards import dashboard, dashboard_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

    from support.dashboards import RunningDashboard


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db") as db:
        yield db


@pytest.fixture
def served(db: SessionDB) -> Iterator[RunningDashboard]:
    with dashboard(dashboard_context(db)) as running:
        yield running


@pytest.fixture
def client(served: RunningDashboard) -> httpx.Client:
    return served.client


@pytest.fixture
def plugin_modules_removed() -> Iterator[None]:
    """Remove the modules of dashboard plugins after a test."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("hermes_dashboard_plugin_"):
            del sys.modules[name]
