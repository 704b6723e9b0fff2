"""The status of scans, and the scan process."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess

    from hermes_achievements.scan.survey import SurveyReport
    from hermes_core.clock import Clock

FAILURE_BACKOFF: Final = Backoff(30.0, 600.0)
BUSY_PAUSE_SECONDS: Final = 2.0


class ReportedProgress(NamedTuple):
    """How many sessions of a scan were read."""

    sessions: int
    total: int
    percent: int
    seconds_left: float | None


class ScanFacts(NamedTuple):
    """The state of the scans: idle, running or failed."""

    state: str = "idle"
    started_at: float | None = None
    finished_at: float | None = None
    last_success_at: float | None = None
    last_duration_ms: float | None = None
    last_error: str | None = None
    run_count: int = 0
    progress: ReportedProgress | None = None
    waiting_for: str | None = None
    next_try_at: float | None = None

    def as_dict(self) -> dict[str, object]:
        """The facts for JSON."""
        progress = None if self.progress is None else self.progress._asdict()
        return {**self._asdict(), "progress": progress}


class ScanStatus:
    """The status of the scans of one service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_scan_at = float("-inf")
        self._facts = ScanFacts()

    def facts(self) -> ScanFacts:
        """The status."""
        return self._facts

    @property
    def is_running(self) -> bool:
        """Whether a scan is running in this process."""
        return self._facts.state == "running"

    @property
    def is_backing_off(self) -> bool:
        """Whether automatic scans are still delayed after a failure."""
        return self._clock.monotonic() < self._next_scan_at

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record the start and the end of a scan."""
        started_at = time.monotonic()
        self._set(
            state="running",
            started_at=self._clock.now(),
            progress=None,
            waiting_for=None,
            run_count=self._facts.run_count + 1,
        )
        try:
            yield
        except BaseException as error:
            self.failed(f"{type(error).__name__}: {error}")
            raise
        finally:
            milliseconds = (time.monotonic() - started_at) * 1000
            self._set(
                finished_at=self._clock.now(),
                last_duration_ms=round(milliseconds, 3),
                progress=None,
            )

    def progress(self, report: SurveyReport) -> None:
        """Record the progress of the scan."""
        self._set(
            progress=ReportedProgress(
                report.sessions,
                report.total,
                100 * report.sessions // report.total if report.total else 0,
                report.seconds_left,
            )
        )

    def succeeded(self) -> None:
        """Record a successful scan."""
        self._failures = 0
        self._delay_next(0.0)
        self._set(state="idle", last_success_at=self._clock.now(), last_error=None)

    def busy(self, reason: str) -> None:
        """Record that another process is scanning."""
        self._failures = 0
        self._delay_next(BUSY_PAUSE_SECONDS)
        self._set(state="idle", last_error=None, waiting_for=reason)

    def failed(self, reason: str) -> None:
        """Record a failed scan and delay the next one."""
        self._failures += 1
        self._delay_next(FAILURE_BACKOFF.delay(self._failures))
        self._set(state="failed", last_error=reason)

    def _delay_next(self, seconds: float) -> None:
        self._next_scan_at = self._clock.monotonic() + seconds
        self._set(next_try_at=self._clock.now() + seconds if seconds else None)

    def _set(self, **facts: Any) -> None:
        with self._lock:
            self._facts = self._facts._replace(**facts)


class ScanProcess:
    """The running scan process, if any; terminated at exit."""

    def __init__(self) -> None:
        self.is_exiting = False
        self._process: BaseProcess | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def started(self, process: BaseProcess) -> None:
        """Track a started process."""
        with self._lock:
            if self._owner != os.getpid():
                self._owner = os.getpid()
                # Exit hooks run in reverse order: this one must run before the hook of
                # multiprocessing, which waits for all processes.
                atexit.register(self._exit)
            self._process = process
            if self.is_exiting:
                process.terminate()

    def terminate(self) -> None:
        """Terminate the process; saved results stay, and the next scan resumes it."""
        with self._lock:
            process = self._process
            self._process = None
            if process is not None and self._owner == os.getpid() and process.is_alive():
                process.terminate()

    def close(self) -> None:
        """Terminate the process and unregister the exit hook."""
        self.terminate()
        atexit.unregister(self._exit)
        self._owner = 0

    def _exit(self) -> None:
        self.is_exiting = True
        self.terminate()
