"""Fixtures of imports: an open history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store
