"""Each test tells a life of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from achievements.history_builder import HistoryBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def builder() -> Iterator[HistoryBuilder]:
    """A history in the test's own home, with one conversation under way."""
    result = HistoryBuilder()
    yield result.start("s1")
    result.close()
