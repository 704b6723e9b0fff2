"""Reading the activity of many sessions from the ledger: here, or in another process.

The first reading of a large ledger takes seconds of one core, which a server does not
have to spare; what has changed since takes a moment.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.activity import Activity, activity_of
from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics.facts import Book
from hermes_achievements.scan.workers import NICENESS, quiet_process
from hermes_core.errors import LedgerDamagedError, ScanError
from hermes_core.isolate import Step, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from typing import Protocol

    class GivesBooks(Protocol):
        """What is asked of a ledger."""

        def books(self, session_ids: Sequence[str]) -> dict[str, bytes]:
            """The books of these sessions, as far as there are any."""
            ...

        def close(self) -> None:
            """Let go of it."""
            ...

    Take = Callable[[str, Activity], object]

AT_ONCE: Final = 100
BREATH_SECONDS: Final = 0.002  # between slices, so that others get their turn


def read_here(ledger: GivesBooks, zone: str, ids: Sequence[str], take: Take) -> None:
    """Hand over the activity of these sessions, a few at a time."""
    calendar = Calendar(find_zone(zone))
    for some in _slices(ids):
        for session_id, stored in ledger.books(some).items():
            if (found := _readable(stored, calendar)) is not None:
                take(session_id, found)
        time.sleep(BREATH_SECONDS)


def read_elsewhere(
    open_ledger: Callable[[], GivesBooks],
    zone: str,
    ids: Sequence[str],
    take: Take,
    started: Callable[[BaseProcess], None],
) -> None:
    """As `read_here`, in a process of its own; *started* is told which."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve, args=(theirs, open_ledger, zone, list(ids)), name="hermes-activity"
    )
    process.start()
    theirs.close()
    started(process)
    try:
        while (answer := _received(ours)) is not None:
            for session_id, packed in answer:
                take(session_id, Activity.unpack(packed))
            time.sleep(BREATH_SECONDS)
    finally:
        ours.close()
        process.join(timeout=10)
        if process.is_alive():
            process.kill()
            process.join()


def _received(pipe: Connection) -> Any:
    """The next sessions; None when there are no more."""
    try:
        answer = pipe.recv()
    except EOFError as error:
        raise ScanError("the process that reads the statistics has died") from error
    if isinstance(answer, str):
        raise ScanError(answer)
    return answer


def _serve(
    pipe: Connection, open_ledger: Callable[[], GivesBooks], zone: str, ids: list[str]
) -> None:
    """The life of the other process; it ends when the pipe does."""
    quiet_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    gc.disable()

    def read() -> None:
        calendar = Calendar(find_zone(zone))
        with contextlib.closing(open_ledger()) as ledger:
            for some in _slices(ids):
                found = (
                    (one, _readable(stored, calendar)) for one, stored in ledger.books(some).items()
                )
                pipe.send([(one, activity.pack()) for one, activity in found if activity])
        pipe.send(None)

    failure = attempt(Step("read the statistics", read))
    if failure is not None:
        with contextlib.suppress(OSError):
            pipe.send(f"{type(failure.error).__name__}: {failure.error}")


def _slices(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))


def _readable(stored: bytes, calendar: Calendar) -> Activity | None:
    """The activity in a book; None when it is damaged, and the next scan makes it anew."""
    try:
        return activity_of(Book.unpack(stored), calendar)
    except LedgerDamagedError:
        return None
