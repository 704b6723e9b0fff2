"""When a session was active, and with which tools: its book in a few numbers for each day."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics.facts import ASSISTANT as REPLY
from hermes_achievements.metrics.facts import ROLE, TIME_FIELD, USER, Book
from hermes_achievements.metrics.session_view import SessionFacts
from hermes_achievements.metrics.talk import active_seconds
from hermes_achievements.scan.history import Kind, SessionRow
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

    Take = Callable[[str, "Activity"], object]


class ToolActivity(NamedTuple):
    """A tool on one day: how often it was called, and how many results were failures."""

    tool: str
    calls: int
    failures: int


class DayActivity(NamedTuple):
    """One day of a session. Messages are those of people and of the agent, not of tools."""

    day: str
    messages: int
    sent: int  # by a person
    active_seconds: int
    hours: tuple[tuple[int, int], ...]  # hour of the day, messages
    tools: tuple[ToolActivity, ...]


class Activity(NamedTuple):
    """A session and its days, in order."""

    row: SessionRow
    days: tuple[DayActivity, ...]

    @property
    def is_conversation(self) -> bool:
        """Whether somebody had it; delegated work belongs to another."""
        return self.row.kind != Kind.SUBAGENT

    def pack(self) -> bytes:
        """As it travels between processes."""
        return orjson.dumps([tuple(self.row), self.days], default=tuple)

    @classmethod
    def unpack(cls, stored: bytes) -> Activity:
        """One that was packed; words that come again and again are held once."""
        row, days = orjson.loads(stored)
        return cls(SessionRow(*row), tuple(map(_day, days)))


def _day(stored: list[Any]) -> DayActivity:
    day, messages, sent, seconds, hours, tools = stored
    return DayActivity(
        intern(day),
        messages,
        sent,
        seconds,
        tuple(map(tuple, hours)),
        tuple(ToolActivity(intern(tool), calls, failures) for tool, calls, failures in tools),
    )


class _Counting:
    """One day while it is being counted."""

    __slots__ = ("hours", "messages", "seconds", "sent", "tools")

    def __init__(self) -> None:
        self.messages = 0
        self.sent = 0
        self.seconds = 0
        self.hours: dict[int, int] = {}
        self.tools: dict[str, list[int]] = {}

    def use(self, tool: str, place: int) -> None:
        self.tools.setdefault(tool or "?", [0, 0])[place] += 1

    def done(self, day: str) -> DayActivity:
        return DayActivity(
            day,
            self.messages,
            self.sent,
            self.seconds,
            tuple(sorted(self.hours.items())),
            tuple(ToolActivity(tool, *counts) for tool, counts in sorted(self.tools.items())),
        )


def activity_of(book: Book, calendar: Calendar) -> Activity:
    """What *book* says about the days of its session."""
    session = SessionFacts(book, calendar)
    days: dict[str, _Counting] = {}

    def on(moment: float) -> _Counting:
        day = calendar.at(moment).day
        return days.get(day) or days.setdefault(day, _Counting())

    for fact in session.facts:
        if fact[ROLE] in (USER, REPLY):
            counting, hour = on(fact[TIME_FIELD]), calendar.at(fact[TIME_FIELD]).hour
            counting.messages += 1
            counting.hours[hour] = counting.hours.get(hour, 0) + 1
    for fact in session.said:
        on(fact[TIME_FIELD]).sent += 1
    for call in session.calls:
        on(call.fact[TIME_FIELD]).use(call.tool, 0)
    for result in session.failures:
        on(result.fact[TIME_FIELD]).use(result.tool, 1)
    for fact, seconds in active_seconds(session):
        on(fact[TIME_FIELD]).seconds += seconds
    return Activity(session.row, tuple(days[day].done(day) for day in sorted(days)))


AT_ONCE: Final = 100
BREATH_SECONDS: Final = 0.002  # between slices, so that others get their turn


def read_here(ledger: GivesBooks, zone: str, ids: Sequence[str], take: Take) -> None:
    """Hand over the activity of these sessions, a few at a time."""
    calendar = Calendar(find_zone(zone))
    for some in _slices(ids):
        for session_id, stored in ledger.books(some).items():
            if (result := _readable(stored, calendar)) is not None:
                take(session_id, result)
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
                results = (
                    (item, _readable(stored, calendar))
                    for item, stored in ledger.books(some).items()
                )
                pipe.send([(item, activity.pack()) for item, activity in results if activity])
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
