"""A store and a dashboard over it, on a real server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.daemons import stopping_daemon
from support.dashboards import dashboard, dashboard_context
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
def serve() -> Iterator[Callable[[str], str]]:
    """Start a model server that the owner has configured; return its name."""
    with stopping_daemon(), model_servers() as start:

        def start_configured(steps: str) -> str:
            server = start(steps)
            ConfigFile.of_home().set("llm.base_url", server.base_url)
            return model_argument(server)

        yield start_configured


@pytest.fixture
def plugin_modules_removed() -> Iterator[None]:
    """Remove the modules of dashboard plugins after a test."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("hermes_dashboard_plugin_"):
            del sys.modules[name]
