"""Fills the indexes in the background of a process that stays: small steps, with pauses."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from hermes_state.calls.repository import CallRepository
    from hermes_state.search.repository import SearchRepository

FILL_SECONDS: Final = 0.1
PAUSE_SECONDS: Final = 0.3  # between steps, so that other writers get the lock
VECTOR_PAUSES: Final = 4  # times the time that vectors took: a fifth of one core
IDLE_SECONDS: Final = 60.0  # while the index is complete, or cannot be written


class IndexUpdater:
    """One thread that keeps an index complete until it is stopped."""

    def __init__(self, search: SearchRepository, calls: CallRepository) -> None:
        self._search = search
        self._calls = calls
        self._is_stopped = threading.Event()
        self._has_work = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._with_tools = False  # whether tool text was searched

    def start(self, *, with_tools: bool = False) -> None:
        """Start the thread, or let it look again now."""
        with self._lock:
            self._with_tools = self._with_tools or with_tools
            self._has_work.set()
            if self._is_stopped.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(
                target=self._run, name="hermes-search-filling", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current step."""
        self._is_stopped.set()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            self._has_work.clear()
            attempt("fill the search index", self._update)
            self._has_work.wait(IDLE_SECONDS)

    def _update(self) -> None:
        before = None
        while not self._search.fill(FILL_SECONDS, with_tools=self._with_tools):
            done = self._search.progress(with_tools=self._with_tools)
            if done == before or self._is_stopped.wait(PAUSE_SECONDS):
                return  # no progress: the file is unusable at the moment
            before = done
        while not self._calls.fill(FILL_SECONDS):
            if self._is_stopped.wait(PAUSE_SECONDS):
                return
        while not self._is_stopped.is_set():
            began = time.monotonic()
            if self._search.meaning.fill(FILL_SECONDS):
                return
            self._is_stopped.wait(VECTOR_PAUSES * (time.monotonic() - began))
