"""Work that many ask for at once is done once for all of them.

Whoever comes while it is under way gets the next run, because what they have in mind may
have happened after this one began. So there is at most one run under way and one waiting of
each kind, however many ask.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class SharedRuns(Generic[K, V]):
    """Runs in threads of their own, one after the other; these do not hold up an exit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: dict[K, Future[V]] = {}

    def join(self, key: K, work: Callable[[], V]) -> Future[V]:
        """The result of a run for *key* that begins now or later."""
        with self._lock:
            future = self._waiting.get(key)
            if future is not None:
                return future
            future = self._waiting[key] = Future()
        run = (key, future, work)
        threading.Thread(target=self._run, args=run, name=self._name, daemon=True).start()
        return future

    def _run(self, key: K, future: Future[V], work: Callable[[], V]) -> None:
        with self._turn:
            with self._lock:
                del self._waiting[key]
            values: list[V] = []
            failure = attempt(Step(self._name, lambda: values.append(work())))
        if failure is None:
            future.set_result(values[0])
        else:
            future.set_exception(failure.error)
