"""Threads that are reused for short work and do not keep the process alive."""

from __future__ import annotations

import functools
import os
import queue
import threading
from typing import TYPE_CHECKING, Final

from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_IDLE_THREADS: Final = 64


class DaemonThreads:
    """A pool that starts a thread when all others are busy; it never makes work wait."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[queue.SimpleQueue[Callable[[], object]]] = []

    def run(self, work: Callable[[], object]) -> None:
        """Run *work* in a thread; a failure is logged."""
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = queue.SimpleQueue()
            serve = functools.partial(self._serve, jobs)
            threading.Thread(target=serve, name=self._name, daemon=True).start()
        jobs.put(work)

    def _serve(self, jobs: queue.SimpleQueue[Callable[[], object]]) -> None:
        while True:
            attempt(Step(self._name, jobs.get()))
            if len(self._idle) >= MAX_IDLE_THREADS:
                return
            self._idle.append(jobs)


@functools.lru_cache(maxsize=8)
def _of_process(name: str, _pid: int) -> DaemonThreads:
    return DaemonThreads(name)


def daemon_threads(name: str) -> DaemonThreads:
    """The pool of this process with this name; a forked process has its own."""
    return _of_process(name, os.getpid())
