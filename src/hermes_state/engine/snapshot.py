"""A history at one moment, on one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader

T = TypeVar("T")


class HistorySnapshot(NamedTuple):
    """Reads inside one transaction."""

    place: str
    columns: Columns
    reader: Reader

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* in the transaction."""
        return work(self.reader)
