"""Work that a signal handler must not strike in the middle of.

Handlers run on the main thread, between any two steps of it. A lock held there when one
strikes stays held until the handler returns; if the handler waits for anything that needs
the lock, both wait for ever. So the main thread takes no lock of ours: such work is done
on another thread, and the main thread only waits for its end.
"""

from __future__ import annotations

import _thread
import heapq
import itertools
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    Task = tuple[float, int, Callable[[], object]]
    from collections.abc import Callable

SLICE_SECONDS: Final = 0.025
BREATH_SECONDS: Final = 0.025


class Pace:
    """Counts the work done, and pauses when it is time."""

    def __init__(self) -> None:
        self._worked_seconds = 0.0

    def note(self, seconds: float) -> None:
        """So long was just worked; returns when the next piece of work may begin."""
        self._worked_seconds += seconds
        if self._worked_seconds >= SLICE_SECONDS:
            time.sleep(BREATH_SECONDS)
            self._worked_seconds = 0.0


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


T = TypeVar("T")


def is_main_thread() -> bool:
    """Whether a signal handler could strike right here."""
    return _thread.get_ident() == threading.main_thread().ident


def start_thread(run: Callable[[], None]) -> None:
    """Start a thread; unlike `threading.Thread.start`, this takes no lock."""

    def seen() -> None:
        sys.settrace(threading.gettrace())  # as debuggers and coverage expect of a thread
        run()

    _thread.start_new_thread(seen, ())


def run_apart(work: Callable[[], T]) -> T:
    """Run *work* to its end on a thread that is not the main one; its result, or its error."""
    if not is_main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            errors.append(error)
        finally:
            done.release()

    start_thread(run)
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]
