"""Opening a history for statistics alone: in processes that have no store of their own."""

from __future__ import annotations

from pathlib import Path

from hermes_core.clock import SystemClock
from hermes_state.engine.engine import ENGINES
from hermes_state.ledger.history import StoreHistory
from hermes_state.store_settings import StoreSettings


class OpenedHistory(StoreHistory):
    """A history that was opened to be read, and is closed with this object."""

    def close(self) -> None:
        """Let go of the file."""
        ENGINES.release(self._engine)


def open_history(path: str) -> OpenedHistory:
    """The history at *path*, to be read."""
    engine = ENGINES.acquire(
        Path(path), read_only=True, clock=SystemClock(), settings=StoreSettings.of_home()
    )
    return OpenedHistory(engine)
