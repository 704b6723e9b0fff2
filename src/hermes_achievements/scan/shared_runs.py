"""Coalesces concurrent requests for the same work into one run.

A request that arrives during a run gets the next run, because the change it waits for may be
newer than the start of the current one. At most one run per key is active and one is queued.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class SharedRuns(Generic[K, V]):
    """Runs work sequentially in daemon threads, which do not delay the exit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._queued: dict[K, Future[V]] = {}

    def join(self, key: K, work: Callable[[], V]) -> Future[V]:
        """The result of a run for *key* that has not started yet."""
        with self._lock:
            future = self._queued.get(key)
            if future is not None:
                return future
            future = self._queued[key] = Future()
        run = (key, future, work)
        threading.Thread(target=self._run, args=run, name=self._name, daemon=True).start()
        return future

    def _run(self, key: K, future: Future[V], work: Callable[[], V]) -> None:
        with self._run_lock:
            with self._lock:
                del self._queued[key]
            result = attempt(self._name, work)
        if isinstance(result, Failure):
            future.set_exception(result.error)
        else:
            future.set_result(result)
