"""A store and a dashboard over it, on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.dashboards import dashboard, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

    from support.dashboards import Served


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db") as db:
        yield db


@pytest.fixture
def served(db: SessionDB) -> Iterator[Served]:
    with dashboard(parts_of(db)) as running:
        yield running


@pytest.fixture
def client(served: Served) -> httpx.Client:
    return served.client
