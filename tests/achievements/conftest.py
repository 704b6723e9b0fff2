"""Fixtures of the achievements tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from achievements.history_builder import HistoryBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def builder() -> Iterator[HistoryBuilder]:
    """A history in the home of the test, with one open session."""
    result = HistoryBuilder()
    yield result.start("s1")
    result.close()
