"""Each test tells a life of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from achievements.life import Life

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def life() -> Iterator[Life]:
    """A history in the test's own home, with one conversation under way."""
    result = Life()
    yield result.begin("s1")
    result.close()
