"""Scanning the history before something is said about it, with a bar on a terminal."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.evaluation.views import Names, named
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.errors import ScanBusyError, ScanError

if TYPE_CHECKING:
    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.scan.history import Ledger
    from hermes_achievements.scan.scanner import Progress, Scanner
    from hermes_achievements.service import Service, Source
    from hermes_cli.output import Output

    Snapshot = dict[str, Any]

LOOK_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 60.0  # for another process that is scanning
BAR: Final = 16
BUSY: Final = "Another process is scanning the history"
LATER: Final = "Try again in a minute."
CANNOT_KEEP: Final = "HERMES_HOME is not writable"


class Scanned(NamedTuple):
    """What is known after a scan, and where it comes from.

    It `is_earlier` when it was not read now: another process is scanning, or nothing can be
    kept here.
    """

    service: Service
    snapshot: Snapshot
    source: Source
    is_earlier: bool = False


def scanned(out: Output, *, full: bool = False, is_known_enough: bool = True) -> Scanned:
    """The user's achievements, after a look at everything new; with *full*, at everything.

    Ctrl-C is safe: what was read is kept, and the next scan goes on from there. Where
    nothing can be kept, what is known is enough, unless the caller needs a scan.
    """
    service, source = achievements.service(), achievements.source()
    known = None if achievements.is_writable() else service.current()
    if known is not None and is_known_enough and not full:
        out.note(
            f"{CANNOT_KEEP}; showing the result of {human_format.local(known['generated_at'])}."
        )
        return Scanned(service, _named(known, source), source, is_earlier=True)
    snapshot, is_earlier = _watched_run(service, source, out, full=full)
    if is_earlier:
        out.note(f"{BUSY}; showing the previous result.")
    elif service.records.problem is not None or not source.can_travel:
        out.note(f"{CANNOT_KEEP}; the next scan starts from the beginning.")
    return Scanned(service, _named(snapshot, source), source, is_earlier)


def _named(snapshot: Snapshot, source: Source) -> Snapshot:
    return named(snapshot, Names(source.open_history))


def _watched_run(
    service: Service, source: Source, out: Output, *, full: bool
) -> tuple[Snapshot, bool]:
    """Scan in a thread of its own, so that this one can show how far it is."""
    executor = ThreadPoolExecutor(1, initializer=_leave_interrupts_to_others)
    stopping = threading.Event()
    running = executor.submit(_run, service, source, stopping, full=full)
    try:
        while not wait([running], LOOK_SECONDS).done:
            _show(service.status.facts()["progress"], out)
    except KeyboardInterrupt:
        stopping.set()
        for process in multiprocessing.active_children():
            process.terminate()  # the scan's own; its thread ends with them
        raise
    finally:
        out.progress("")
        executor.shutdown(wait=False, cancel_futures=True)
    return running.result()


def _leave_interrupts_to_others() -> None:
    """The terminal's Ctrl-C is the main thread's; processes started here inherit that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _run(
    service: Service, source: Source, stopping: threading.Event, *, full: bool
) -> tuple[Snapshot, bool]:
    """Scan; what was known earlier, and True, when another process is at it.

    Where nothing is known yet, the other process is waited for.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        if not _is_taken(source):
            snapshot = service.run(source, service.compute, publish=False, full=full)
            if snapshot is not None:
                return snapshot, False
            failure = service.status.facts()["last_error"]
            if failure:
                raise ScanError(f"Scanning the history failed: {failure}")
        earlier = service.current()
        if earlier is not None:
            return earlier, True
        if stopping.wait(LOOK_SECONDS) or time.monotonic() > until:
            raise ScanBusyError(f"{BUSY}. {LATER}")


def _is_taken(source: Source) -> bool:
    """Whether another process is scanning: asked first, it costs no process of our own."""
    with contextlib.closing(source.open_ledger()) as ledger, ledger.alone() as is_alone:
        return not is_alone


def _show(progress: dict[str, Any] | None, out: Output) -> None:
    if progress is not None:
        out.progress(scanning(progress["sessions"], progress["total"], progress["seconds_left"]))


def scanning(done: int, total: int, seconds_left: float | None) -> str:
    """How far a scan is."""
    full = BAR * done // total if total else 0
    is_early = done * 50 < total  # too early for a guess that anybody would believe
    is_known = seconds_left is not None and not is_early
    left = f", about {max(1, round(seconds_left or 0))} s left" if is_known else ""
    bar = "━" * full + "─" * (BAR - full)
    percent = 100 * done // total if total else 0
    return f"Scanning {bar} {percent} % {done:,} of {total:,} sessions{left}"


def tallied(out: Output, source: Source, ledger: Ledger, *, is_scanned: bool) -> Tally:
    """What the history amounts to; without a scan before, everything new is looked at."""
    found = known_tally(source, ledger) if is_scanned else None
    if found is not None:
        return found
    try:
        scan = _scanner(source, ledger).refresh(on_progress=lambda one: _show_scan(one, out))
    except ScanBusyError as error:
        raise ScanBusyError(f"{BUSY}, and no earlier result exists. {LATER}") from error
    out.progress("")
    return scan.tally


def known_tally(source: Source, ledger: Ledger) -> Tally | None:
    """What the history amounted to when it was last read to its end; None if it never was."""
    found = _scanner(source, ledger).current()
    return None if found is None else found[0]


def _scanner(source: Source, ledger: Ledger) -> Scanner:
    from hermes_achievements.scan.scanner import Scanner  # noqa: PLC0415 - `--help` does without

    processes = None if source.can_travel else 0
    return Scanner(source.open_history, ledger, source.zone, processes=processes)


def _show_scan(progress: Progress, out: Output) -> None:
    out.progress(scanning(progress.sessions, progress.total, progress.seconds_left))
