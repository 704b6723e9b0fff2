"""Activity per session and day: messages, active seconds, hours and tools."""

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
from hermes_achievements.metrics.conversation import active_seconds
from hermes_achievements.metrics.facts import ASSISTANT_ROLE as REPLY
from hermes_achievements.metrics.facts import ROLE_FIELD, TIME_FIELD, USER_ROLE, RecordedFacts
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.scan.history import ScannedSession, SessionKind
from hermes_achievements.scan.workers import NICENESS, silence_logging
from hermes_core.errors import LedgerDamagedError, ScanError
from hermes_core.isolate import Failure, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from typing import Protocol

    class FactsReader(Protocol):
        """The part of a ledger that activity needs."""

        def recorded_facts(self, session_ids: Sequence[str]) -> dict[str, bytes]:
            """Recorded facts of these sessions; unknown sessions are omitted."""
            ...

        def close(self) -> None:
            """Close the ledger."""
            ...

    OnActivity = Callable[[str, "Activity"], object]


class ToolActivity(NamedTuple):
    """Calls and failed results of a tool on one day."""

    tool: str
    calls: int
    failures: int


class DayActivity(NamedTuple):
    """One day of a session; messages are those of users and of the agent, not of tools."""

    day: str
    messages: int
    sent: int  # by the user
    active_seconds: int
    hours: tuple[tuple[int, int], ...]  # hour of the day, messages
    tools: tuple[ToolActivity, ...]


class Activity(NamedTuple):
    """A session and its active days, in order."""

    row: ScannedSession
    days: tuple[DayActivity, ...]

    @property
    def is_conversation(self) -> bool:
        """Whether it is a session of the user; delegated work belongs to its parent."""
        return self.row.kind != SessionKind.SUBAGENT

    def pack(self) -> bytes:
        """Serialize for another process."""
        return orjson.dumps([tuple(self.row), self.days], default=tuple)

    @classmethod
    def unpack(cls, stored: bytes) -> Activity:
        """Deserialize; repeated strings are interned to save memory."""
        row, days = orjson.loads(stored)
        return cls(ScannedSession(*row), tuple(map(_unpack_day, days)))


def _unpack_day(stored: list[Any]) -> DayActivity:
    day, messages, sent, seconds, hours, tools = stored
    return DayActivity(
        intern(day),
        messages,
        sent,
        seconds,
        tuple(map(tuple, hours)),
        tuple(ToolActivity(intern(tool), calls, failures) for tool, calls, failures in tools),
    )


class _DayCounter:
    """Counts the activity of one day."""

    __slots__ = ("hours", "messages", "seconds", "sent", "tools")

    def __init__(self) -> None:
        self.messages = 0
        self.sent = 0
        self.seconds = 0
        self.hours: dict[int, int] = {}
        self.tools: dict[str, list[int]] = {}

    def count_tool(self, tool: str, index: int) -> None:
        self.tools.setdefault(tool or "?", [0, 0])[index] += 1

    def freeze(self, day: str) -> DayActivity:
        return DayActivity(
            day,
            self.messages,
            self.sent,
            self.seconds,
            tuple(sorted(self.hours.items())),
            tuple(ToolActivity(tool, *counts) for tool, counts in sorted(self.tools.items())),
        )


def summarize_activity(recorded: RecordedFacts, calendar: Calendar) -> Activity:
    """The activity of a session, from its recorded facts."""
    session = SessionView(recorded, calendar)
    days: dict[str, _DayCounter] = {}

    def counter_at(moment: float) -> _DayCounter:
        day = calendar.at(moment).day
        return days.get(day) or days.setdefault(day, _DayCounter())

    for fact in session.facts:
        if fact[ROLE_FIELD] in (USER_ROLE, REPLY):
            counter, hour = counter_at(fact[TIME_FIELD]), calendar.at(fact[TIME_FIELD]).hour
            counter.messages += 1
            counter.hours[hour] = counter.hours.get(hour, 0) + 1
    for fact in session.user_messages:
        counter_at(fact[TIME_FIELD]).sent += 1
    for call in session.calls:
        counter_at(call.fact[TIME_FIELD]).count_tool(call.tool, 0)
    for result in session.failures:
        counter_at(result.fact[TIME_FIELD]).count_tool(result.tool, 1)
    for fact, seconds in active_seconds(session):
        counter_at(fact[TIME_FIELD]).seconds += seconds
    return Activity(session.row, tuple(days[day].freeze(day) for day in sorted(days)))


BATCH_SESSIONS: Final = 100
BATCH_PAUSE_SECONDS: Final = 0.002  # lets other threads and processes run between batches


def read_in_process(
    ledger: FactsReader, zone: str, ids: Sequence[str], on_activity: OnActivity
) -> None:
    """Call *on_activity* with the activity of each session, in batches."""
    calendar = Calendar(find_zone(zone))
    for batch_ids in _batches(ids):
        for session_id, stored in ledger.recorded_facts(batch_ids).items():
            if (result := _decode_activity(stored, calendar)) is not None:
                on_activity(session_id, result)
        time.sleep(BATCH_PAUSE_SECONDS)


def read_in_subprocess(
    open_ledger: Callable[[], FactsReader],
    zone: str,
    ids: Sequence[str],
    on_activity: OnActivity,
    started: Callable[[BaseProcess], None],
) -> None:
    """Like `read_in_process`, in a subprocess that is passed to *started*."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe(duplex=False)
    process = context.Process(
        target=_run_reader, args=(child_end, open_ledger, zone, list(ids)), name="hermes-activity"
    )
    process.start()
    child_end.close()
    started(process)
    try:
        while (message := _receive_batch(parent_end)) is not None:
            for session_id, packed in message:
                on_activity(session_id, Activity.unpack(packed))
            time.sleep(BATCH_PAUSE_SECONDS)
    finally:
        parent_end.close()
        process.join(timeout=10)
        if process.is_alive():
            process.kill()
            process.join()


def _receive_batch(pipe: Connection) -> Any:
    """The next batch of sessions; None after the last one."""
    try:
        message = pipe.recv()
    except EOFError as error:
        raise ScanError("the process that reads the statistics has died") from error
    if isinstance(message, str):
        raise ScanError(message)
    return message


def _run_reader(
    pipe: Connection, open_ledger: Callable[[], FactsReader], zone: str, ids: list[str]
) -> None:
    """Main function of the subprocess; it ends when the pipe is closed."""
    silence_logging()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl+C
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    gc.disable()

    def read() -> None:
        calendar = Calendar(find_zone(zone))
        with contextlib.closing(open_ledger()) as ledger:
            for batch_ids in _batches(ids):
                results = (
                    (item, _decode_activity(stored, calendar))
                    for item, stored in ledger.recorded_facts(batch_ids).items()
                )
                pipe.send([(item, activity.pack()) for item, activity in results if activity])
        pipe.send(None)

    result = attempt("read the statistics", read)
    if isinstance(result, Failure):
        with contextlib.suppress(OSError):
            pipe.send(f"{type(result.error).__name__}: {result.error}")


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + BATCH_SESSIONS] for start in range(0, len(ids), BATCH_SESSIONS))


def _decode_activity(stored: bytes, calendar: Calendar) -> Activity | None:
    """The activity of stored facts; None if they are damaged, the next scan rebuilds them."""
    try:
        return summarize_activity(RecordedFacts.unpack(stored), calendar)
    except LedgerDamagedError:
        return None
