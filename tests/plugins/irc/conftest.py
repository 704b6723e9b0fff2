"""A store and a scripted model, for tests with a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture
def answering(hermes_home: Path) -> Iterator[Callable[[str], Any]]:
    """A function that configures a scripted model."""
    with configured_models() as choose:
        yield choose
