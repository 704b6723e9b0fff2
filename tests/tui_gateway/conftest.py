"""Scripted models and clients for tests of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with model_servers() as start:
        yield lambda steps: model_argument(start(steps))
