"""Scripted models and clients for tests of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.scripted import model, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with serving() as start:
        yield lambda steps: model(start(steps))
