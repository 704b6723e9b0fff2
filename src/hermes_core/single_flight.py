"""Callers who want the same thing at the same time share one run of the work.

Nothing is remembered: a call that starts after a run has ended starts a new one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class _Flight(Generic[V]):
    """One run in progress. *values* holds the result once there is one."""

    def __init__(self) -> None:
        self.pilot = threading.get_ident()
        self.landed = threading.Event()
        self.values: list[V] = []
        self.error: Exception | None = None


class SingleFlight(Generic[K, V]):
    """Runs work at most once at a time per key; results and errors are shared."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, _Flight[V]] = {}

    def run(self, key: K, work: Callable[[], V]) -> V:
        """The result of *work*, or of the run for *key* that is already under way.

        When the running thread is stopped by an order to quit, which concerns that
        thread alone, one of the waiting callers does the work instead.
        """
        while True:
            flight, is_pilot = self._board(key)
            if is_pilot:
                return self._fly(key, flight, work)
            if flight.pilot == threading.get_ident():
                raise RuntimeError(f"The work for {key!r} waits for itself.")
            flight.landed.wait()
            if flight.error is not None:
                raise flight.error
            if flight.values:
                return flight.values[0]

    def _board(self, key: K) -> tuple[_Flight[V], bool]:
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            flight = self._flights[key] = _Flight()
            return flight, True

    def _fly(self, key: K, flight: _Flight[V], work: Callable[[], V]) -> V:
        try:
            value = work()
            flight.values.append(value)
        except Exception as error:
            flight.error = error
            raise
        else:
            return value
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
