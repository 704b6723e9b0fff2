"""How scanning is going: what `scan-status` says."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess

    from hermes_achievements.scan.survey import Report
    from hermes_core.clock import Clock

AFTER_FAILURE: Final = Backoff(30.0, 600.0)
BUSY_PAUSE_SECONDS: Final = 2.0


class ScanStatus:
    """The state of the scans of one service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until = float("-inf")
        self._facts: dict[str, Any] = {
            "state": "idle",
            "started_at": None,
            "finished_at": None,
            "last_success_at": None,
            "last_duration_ms": None,
            "last_error": None,
            "run_count": 0,
            "progress": None,
            "waiting_for": None,
            "next_try_at": None,
        }

    def facts(self) -> dict[str, Any]:
        """Everything there is to say."""
        with self._lock:
            return dict(self._facts)

    @property
    def is_running(self) -> bool:
        """Whether a scan is going on in this process."""
        return bool(self._facts["state"] == "running")

    @property
    def is_resting(self) -> bool:
        """Whether it is too early for another scan that nobody has asked for."""
        return self._clock.monotonic() < self._rests_until

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A scan from its beginning to its end."""
        began = time.monotonic()
        self._set(
            state="running",
            started_at=self._clock.now(),
            progress=None,
            waiting_for=None,
            run_count=self._facts["run_count"] + 1,
        )
        try:
            yield
        except BaseException as error:
            self.failed(f"{type(error).__name__}: {error}")
            raise
        finally:
            milliseconds = (time.monotonic() - began) * 1000
            self._set(
                finished_at=self._clock.now(),
                last_duration_ms=round(milliseconds, 3),
                progress=None,
            )

    def progress(self, report: Report) -> None:
        """How far the scan is."""
        self._set(
            progress={
                "sessions": report.sessions,
                "total": report.total,
                "percent": 100 * report.sessions // report.total if report.total else 0,
                "seconds_left": report.seconds_left,
            }
        )

    def succeeded(self) -> None:
        """The scan is through."""
        self._failures = 0
        self._rest(0.0)
        self._set(state="idle", last_success_at=self._clock.now(), last_error=None)

    def busy(self, reason: str) -> None:
        """Another process is scanning."""
        self._failures = 0
        self._rest(BUSY_PAUSE_SECONDS)
        self._set(state="idle", last_error=None, waiting_for=reason)

    def failed(self, reason: str) -> None:
        """The scan has failed; what was known stays, and the next scan is not begun at once."""
        self._failures += 1
        self._rest(AFTER_FAILURE.delay(self._failures))
        self._set(state="failed", last_error=reason)

    def _rest(self, seconds: float) -> None:
        self._rests_until = self._clock.monotonic() + seconds
        self._set(next_try_at=self._clock.now() + seconds if seconds else None)

    def _set(self, **facts: Any) -> None:
        with self._lock:
            self._facts.update(facts)


class ScanProcess:
    """The one that is under way, if any."""

    def __init__(self) -> None:
        self.is_exiting = False
        self._process: BaseProcess | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def started(self, process: BaseProcess) -> None:
        """Take care of *process* from now on."""
        with self._lock:
            if self._owner != os.getpid():
                self._owner = os.getpid()
                # Exit hooks run in reverse order: this one has to come before that of
                # multiprocessing, which waits for every process there is.
                atexit.register(self._exit)
            self._process = process
            if self.is_exiting:
                process.terminate()

    def end(self) -> None:
        """End it; what it has read is kept, and the next scan goes on from there."""
        with self._lock:
            process = self._process
            self._process = None
            if process is not None and self._owner == os.getpid() and process.is_alive():
                process.terminate()

    def close(self) -> None:
        """End it, and no longer wait for the exit."""
        self.end()
        atexit.unregister(self._exit)
        self._owner = 0

    def _exit(self) -> None:
        self.is_exiting = True
        self.end()
