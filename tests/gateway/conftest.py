"""A store of places on a real database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.config import GatewayConfig
from gateway.session import SessionStore
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture
def places(db: SessionDB, tmp_path: Path) -> SessionStore:
    found = SessionStore(tmp_path, GatewayConfig())
    found._db = db
    return found
