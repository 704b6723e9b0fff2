"""Background jobs: migrations, indexing a foreign history, newest first, and house-keeping.

All jobs work in short slices, so that no writer waits for them, and can stop after any
slice; the next opening of the store continues.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import StoreError
from hermes_state.engine.sqlite import migrator
from hermes_state.engine.threads import SLICE_SECONDS
from hermes_state.sessions import index

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

SLICE_SESSIONS: Final = 500


class BackgroundJobs:
    """Completes migrations and the session index, then runs the house-keeping."""

    def __init__(self, engine: Engine, keep_house: Callable[[], object]) -> None:
        self._engine = engine
        self._keep_house = keep_house
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def progress(self) -> tuple[int, int] | None:
        """Number of indexed sessions and of all sessions; None when the index is complete."""
        total, indexed = self._engine.read(index.counts)
        return None if indexed >= total else (indexed, total)

    def start(self, *, is_due: bool) -> None:
        """Start the thread if there is work to do."""
        if self._thread is None and (is_due or self._is_behind()):
            self._thread = threading.Thread(target=self._run, name="hermes-upkeep", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current slice; the next opening continues."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def wait(self, seconds: float) -> bool:
        """Wait for the thread to end; whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout=seconds)
            return not self._thread.is_alive()
        return True

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and (self._fill_slice() or self.build_slice()):
                pass
            if not self._stop.is_set():
                self._keep_house()
        except StoreError as error:
            log.warning("background work postponed: %s", error)

    def _is_behind(self) -> bool:
        return self.progress() is not None or self._engine.read(migrator.unfinished) is not None

    def _fill_slice(self) -> bool:
        """Fill a slice of rows for an unfinished migration; whether there was one."""
        migration = self._engine.read(migrator.unfinished)
        if migration is not None:
            self._engine.write_upkeep(lambda tx: migrator.fill_slice(tx, migration))
        return migration is not None

    def build_slice(self) -> bool:
        """Index a slice of sessions; whether any were missing."""
        missing = self._engine.read(lambda reader: index.missing_sessions(reader, SLICE_SESSIONS))
        position = 0
        while position < len(missing) and not self._stop.is_set():
            start = position
            position += self._engine.write_upkeep(
                lambda tx, start=start: _build(tx, missing[start:])  # type: ignore[misc]
            )
        return bool(missing)


def _build(tx: Tx, session_ids: list[str]) -> int:
    deadline = time.monotonic() + SLICE_SECONDS
    done = 0
    for session_id in session_ids:
        index.reindex(tx, session_id)
        done += 1
        if time.monotonic() >= deadline:
            break
    return done
