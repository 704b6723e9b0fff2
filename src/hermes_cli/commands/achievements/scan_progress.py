"""Scans the history for the achievement commands, with a progress bar."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.evaluation.views import SessionTitles, with_titles
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.errors import ScanBusyError, ScanError

if TYPE_CHECKING:
    from hermes_achievements.evaluation.snapshot import Snapshot
    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.scan.history import Ledger
    from hermes_achievements.scan.scanner import Scanner, ScanProgress
    from hermes_achievements.scan.survey import ReportedProgress, ScanFollower
    from hermes_achievements.service import AchievementService, HistorySource
    from hermes_cli.output import CommandOutput


POLL_SECONDS: Final = 0.1
MAX_WAIT_SECONDS: Final = 60.0  # for a scan in another process
FOLLOW_SECONDS: Final = 0.5
BAR_CELLS: Final = 16
BUSY: Final = "Another process is scanning the history"
TRY_AGAIN: Final = "Try again in a minute."
NOT_WRITABLE: Final = "HERMES_HOME is not writable"


class ScanResult(NamedTuple):
    """The snapshot after a scan and its source.

    `is_earlier` marks the result of an earlier scan: another process is scanning, or
    HERMES_HOME is not writable.
    """

    service: AchievementService
    snapshot: Snapshot
    source: HistorySource
    is_earlier: bool = False


def scan_history(
    out: CommandOutput, *, full: bool = False, may_be_earlier: bool = True
) -> ScanResult:
    """Scan new messages, or with *full* all, and return the achievements.

    Ctrl+C is safe: the next scan continues from there. Without write access an earlier result
    is returned, unless the caller needs a scan.
    """
    service, source = achievements.service(), achievements.source()
    known = None if achievements.is_writable() else service.current()
    if known is not None and may_be_earlier and not full:
        out.note(
            f"{NOT_WRITABLE}; showing the result of {human_format.local(known['generated_at'])}."
        )
        return ScanResult(service, _named(known, source), source, is_earlier=True)
    snapshot, is_earlier = _run_with_progress(service, source, out, full=full)
    if is_earlier:
        out.note(f"{BUSY}; showing the previous result.")
    elif service.records.problem is not None or not source.is_shareable:
        out.note(f"{NOT_WRITABLE}; the next scan starts from the beginning.")
    return ScanResult(service, _named(snapshot, source), source, is_earlier)


def _named(snapshot: Snapshot, source: HistorySource) -> Snapshot:
    return with_titles(snapshot, SessionTitles(source.open_history))


def _run_with_progress(
    service: AchievementService, source: HistorySource, out: CommandOutput, *, full: bool
) -> tuple[Snapshot, bool]:
    """Scan in a thread while this one shows progress."""
    executor = ThreadPoolExecutor(1, initializer=_block_interrupts)
    waiting = _WaitForOther()
    running = executor.submit(_run, service, source, waiting, full=full)
    try:
        while not wait([running], POLL_SECONDS).done:
            _show(service.status.facts().progress, waiting, out)
    except KeyboardInterrupt:
        waiting.stop.set()
        for process in multiprocessing.active_children():
            process.terminate()  # the workers of the scan; its thread ends with them
        raise
    finally:
        out.progress("")
        executor.shutdown(wait=False, cancel_futures=True)
    return running.result()


def _block_interrupts() -> None:
    """Block SIGINT here and in child processes; the main thread handles it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


class _WaitForOther:
    """Waits for the scan of another process, and knows its progress."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.progress = ""
        self._follower: ScanFollower | None = None

    def pause(self, source: HistorySource) -> bool:
        """Wait a moment; returns whether to stop."""
        if self._follower is None:
            from hermes_achievements.scan.survey import ScanFollower  # noqa: PLC0415 - rarely

            self._follower = ScanFollower()
        found = self._follower.poll(source)
        done, total = (0, 0) if found is None else (found.sessions, found.total)
        self.progress = progress_text(done, total, None, title=BUSY)
        return self.stop.wait(FOLLOW_SECONDS)


def _run(
    service: AchievementService, source: HistorySource, waiting: _WaitForOther, *, full: bool
) -> tuple[Snapshot, bool]:
    """Scan; return an earlier snapshot and True if another process is scanning.

    Without an earlier snapshot, wait for the other process.
    """
    until = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        if not _is_scan_running(source):
            snapshot = service.run(source, service.compute, publish=False, full=full)
            if snapshot is not None:
                return snapshot, False
            failure = service.status.facts().last_error
            if failure:
                raise ScanError(f"Scanning the history failed: {failure}")
        earlier = service.current()
        if earlier is not None:
            return earlier, True
        if waiting.pause(source) or time.monotonic() > until:
            raise ScanBusyError(f"{BUSY}. {TRY_AGAIN}")


def _is_scan_running(source: HistorySource) -> bool:
    """Whether another process is scanning; checked before a worker is started."""
    with contextlib.closing(source.open_ledger()) as ledger, ledger.try_lock() as is_locked:
        return not is_locked


def _show(progress: ReportedProgress | None, waiting: _WaitForOther, out: CommandOutput) -> None:
    if progress is not None:
        out.progress(progress_text(progress.sessions, progress.total, progress.seconds_left))
    elif waiting.progress:
        out.progress(waiting.progress)


def progress_text(
    done: int, total: int, seconds_left: float | None, title: str = "Scanning"
) -> str:
    """The progress bar of a scan."""
    full = BAR_CELLS * done // total if total else 0
    is_early = done * 50 < total  # too early for an estimate
    is_known = seconds_left is not None and not is_early
    left = f", about {max(1, round(seconds_left or 0))} s left" if is_known else ""
    bar = "━" * full + "─" * (BAR_CELLS - full)
    percent = 100 * done // total if total else 0
    return f"{title} {bar} {percent} % {done:,} of {total:,} sessions{left}"


def compute_tally(
    out: CommandOutput, source: HistorySource, ledger: Ledger, *, is_scanned: bool
) -> Tally:
    """The tally of the history; scans new messages unless *is_scanned*."""
    result = known_tally(source, ledger) if is_scanned else None
    if result is not None:
        return result
    try:
        scan = _scanner(source, ledger).refresh(on_progress=lambda item: _show_scan(item, out))
    except ScanBusyError as error:
        raise ScanBusyError(f"{BUSY}, and no earlier result exists. {TRY_AGAIN}") from error
    out.progress("")
    return scan.tally


def known_tally(source: HistorySource, ledger: Ledger) -> Tally | None:
    """The tally of the last complete scan; None without one."""
    result = _scanner(source, ledger).current()
    return None if result is None else result[0]


def _scanner(source: HistorySource, ledger: Ledger) -> Scanner:
    from hermes_achievements.scan.scanner import Scanner  # noqa: PLC0415 - `--help` does without

    processes = None if source.is_shareable else 0
    return Scanner(source.open_history, ledger, source.zone, processes=processes)


def _show_scan(progress: ScanProgress, out: CommandOutput) -> None:
    out.progress(progress_text(progress.sessions, progress.total, progress.seconds_left))
