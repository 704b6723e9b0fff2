"""A thread that serves when it is called, and does things later.

It is called through a queue that takes no lock a signal handler could meet: a handler may
call at any moment, also while the main thread is in the middle of calling.
"""

from __future__ import annotations

import _thread
import heapq
import itertools
import queue
import time
from typing import TYPE_CHECKING

from hermes_core.isolate import Step, attempt
from hermes_state.engine.off_main_thread import start_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    Task = tuple[float, int, Callable[[], object]]


class Attendant:
    """Calls *serve* whenever it is called, and tasks when they are due."""

    def __init__(self, serve: Callable[[], object]) -> None:
        self._serve = serve
        self._calls: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._sequence = itertools.count()
        self._is_started = False
        self._is_stopping = False
        self._has_ended = False
        self._place = _thread.allocate_lock()  # held by the thread that serves
        self._end = _thread.allocate_lock()
        self._end.acquire()

    def call(self) -> None:
        """There is something to serve."""
        self._calls.put(None)
        self._ensure_thread()

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do *act* after a while, or when the attendant is stopped."""
        if not self._is_stopping:
            self._calls.put((time.monotonic() + seconds, next(self._sequence), act))
            self._ensure_thread()

    def stop(self, seconds: float) -> None:
        """Do what is left, then end; wait for that."""
        self._is_stopping = True
        self._calls.put(None)
        if self._is_started and not self._has_ended:
            self._end.acquire(timeout=seconds)

    def _ensure_thread(self) -> None:
        if self._has_ended:
            start_thread(self._serve_once)
        elif not self._is_started:
            # A handler may strike here and start one too; the second finds the place taken.
            start_thread(self._run)
            self._is_started = True

    def _serve_once(self) -> None:
        self._serve()

    def _run(self) -> None:
        if not self._place.acquire(blocking=False):
            return
        tasks: list[Task] = []
        while True:
            self._serve()
            if tasks and (self._is_stopping or tasks[0][0] <= time.monotonic()):
                attempt(Step("a timed task of the store", heapq.heappop(tasks)[2]))
            elif self._is_stopping and not tasks and self._calls.empty():
                break
            else:
                self._wait(tasks)
        # Whoever calls from now on sees this, or is served by the last time here.
        self._has_ended = True
        self._serve()
        self._end.release()

    def _wait(self, tasks: list[Task]) -> None:
        patience = max(0.0, tasks[0][0] - time.monotonic()) if tasks else None
        try:
            task = self._calls.get(timeout=patience)
        except queue.Empty:
            return
        if task is not None:
            heapq.heappush(tasks, task)
