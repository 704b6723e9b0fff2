"""Every test of plugins loads its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[None]:
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    del hermes_home
    with SessionDB() as store:
        yield store
