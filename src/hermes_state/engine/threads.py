"""Work that must not be interrupted by a signal handler.

Signal handlers run on the main thread, between any two bytecodes. A lock that the main
thread holds at that moment stays held until the handler returns; a handler that needs the
lock deadlocks. Therefore the main thread never acquires a lock of the store: such work
runs on another thread, and the main thread waits for its end.
"""

from __future__ import annotations

import _thread
import contextlib
import heapq
import itertools
import math
import queue
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    Task = tuple[float, int, Callable[[], object]]

SLICE_SECONDS: Final = 0.025
PAUSE_SECONDS: Final = 0.025
TICK_SECONDS: Final = 0.2
GRAIN_SECONDS: Final = 0.05


class Throttle:
    """Limits the share of time that long work takes: pauses after each slice."""

    def __init__(self) -> None:
        self._worked_seconds = 0.0

    def record(self, seconds: float) -> None:
        """Add *seconds* of work; sleep if the slice is used up."""
        self._worked_seconds += seconds
        if self._worked_seconds >= SLICE_SECONDS:
            time.sleep(PAUSE_SECONDS)
            self._worked_seconds = 0.0


class TimerThread:
    """A thread that calls *serve* on request, and runs timed tasks when they are due.

    Waking a thread costs more than most tasks: tasks that are due in the same GRAIN_SECONDS run
    together. While tasks keep coming, the thread looks for new ones every TICK_SECONDS, and only
    a task that is due before that wakes it.
    """

    def __init__(self, serve: Callable[[], object]) -> None:
        self._serve = serve
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()  # wakes the thread
        self._new: deque[Task] = deque()
        self._wakes_at = math.inf  # -inf while it runs: it looks for new tasks before it waits
        self._sequence = itertools.count()
        self._is_started = False
        self.is_stopping = False
        self._has_ended = False
        self._running = _thread.allocate_lock()  # held by the thread that runs
        self._end = _thread.allocate_lock()
        self._end.acquire()

    def call(self) -> None:
        """Request a call of *serve*."""
        self._calls.put(None)
        self._ensure_thread()

    def later(self, seconds: float, task: Callable[[], object]) -> None:
        """Run *task* after *seconds*, or when the thread is stopped."""
        if self.is_stopping:
            return
        due_at = math.ceil((time.monotonic() + seconds) / GRAIN_SECONDS) * GRAIN_SECONDS
        self._new.append((due_at, next(self._sequence), task))
        if due_at < self._wakes_at:
            self._calls.put(None)
        self._ensure_thread()

    def stop(self, seconds: float) -> None:
        """Finish all tasks, end the thread, and wait for it at most *seconds*."""
        self.is_stopping = True
        self._calls.put(None)
        if self._is_started and not self._has_ended:
            self._end.acquire(timeout=seconds)

    def _ensure_thread(self) -> None:
        if self._has_ended:
            start_thread(self._serve_once)
        elif not self._is_started:
            # A signal handler may start a second thread here; that one finds the lock held.
            start_thread(self._run)
            self._is_started = True

    def _serve_once(self) -> None:
        self._serve()

    def _run(self) -> None:
        if not self._running.acquire(blocking=False):
            return
        tasks: list[Task] = []
        while True:
            self._serve()
            has_new = self._take_new(tasks)
            if tasks and (self.is_stopping or tasks[0][0] <= time.monotonic()):
                attempt("a timed task of the store", heapq.heappop(tasks)[2])
            elif self.is_stopping and not tasks and not self._new and self._calls.empty():
                break
            else:
                self._wait(tasks, is_ticking=has_new)
        # Later callers see this flag; earlier calls are served by the last call below.
        self._has_ended = True
        self._serve()
        self._end.release()

    def _take_new(self, tasks: list[Task]) -> bool:
        """Move the new tasks to *tasks*; whether there were any."""
        has_new = bool(self._new)
        while self._new:
            heapq.heappush(tasks, self._new.popleft())
        return has_new

    def _wait(self, tasks: list[Task], *, is_ticking: bool) -> None:
        """Wait for the next task, the next tick or a call."""
        now = time.monotonic()
        wakes_at = tasks[0][0] if tasks else math.inf
        self._wakes_at = min(wakes_at, now + TICK_SECONDS) if is_ticking else wakes_at
        if not self._new:  # else a task came before `_wakes_at` was set and wakes no thread
            timeout = None if self._wakes_at == math.inf else max(0.0, self._wakes_at - now)
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=timeout)
        self._wakes_at = -math.inf


T = TypeVar("T")


def is_main_thread() -> bool:
    """Whether the current thread is the one that runs signal handlers."""
    return _thread.get_ident() == threading.main_thread().ident


def start_thread(run: Callable[[], None]) -> None:
    """Start a thread; unlike `threading.Thread.start`, this acquires no lock."""

    def traced() -> None:
        sys.settrace(threading.gettrace())  # as debuggers and coverage expect of a thread
        run()

    _thread.start_new_thread(traced, ())


def run_off_main_thread(work: Callable[[], T]) -> T:
    """Run *work* on a thread other than the main one; return its result or raise its error."""
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
