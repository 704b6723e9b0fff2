"""A store of routes on a real database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import hermes_plugin_host
from gateway.config import GatewayConfig
from gateway.session import SessionStore
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.scripted import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture(autouse=True)
def own_plugins() -> Iterator[None]:
    """The plugins of this test's home, and of no other."""
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


@pytest.fixture
def routes(db: SessionDB, tmp_path: Path) -> SessionStore:
    store = SessionStore(tmp_path, GatewayConfig())
    store._db = db
    return store


@pytest.fixture
def answering(hermes_home: Path) -> Iterator[Callable[[str], Any]]:
    """A function that lets a scripted model answer."""
    with serving() as start:

        def choose(steps: str) -> Any:
            server = start(steps)
            config = ConfigFile.of_home()
            config.set("llm.api", "openai")
            config.set("llm.base_url", server.base_url)
            config.set("llm.model", "scripted")
            return server

        yield choose
