"""When a session was active, and with which tools: its book in a few numbers for each day."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from hermes_achievements.metrics.facts import ASSISTANT as REPLY
from hermes_achievements.metrics.facts import AT, ROLE, USER, Book
from hermes_achievements.metrics.session_view import Session
from hermes_achievements.metrics.talk import active_seconds
from hermes_achievements.scan.history import Kind, SessionRow

if TYPE_CHECKING:
    from hermes_achievements.calendar import Calendar


class ToolUse(NamedTuple):
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
    tools: tuple[ToolUse, ...]


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
        tuple(ToolUse(intern(tool), calls, failures) for tool, calls, failures in tools),
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
            tuple(ToolUse(tool, *counts) for tool, counts in sorted(self.tools.items())),
        )


def activity_of(book: Book, calendar: Calendar) -> Activity:
    """What *book* says about the days of its session."""
    session = Session(book, calendar)
    days: dict[str, _Counting] = {}

    def on(moment: float) -> _Counting:
        day = calendar.at(moment).day
        return days.get(day) or days.setdefault(day, _Counting())

    for fact in session.facts:
        if fact[ROLE] in (USER, REPLY):
            counting, hour = on(fact[AT]), calendar.at(fact[AT]).hour
            counting.messages += 1
            counting.hours[hour] = counting.hours.get(hour, 0) + 1
    for fact in session.said:
        on(fact[AT]).sent += 1
    for call in session.calls:
        on(call.fact[AT]).use(call.tool, 0)
    for result in session.failures:
        on(result.fact[AT]).use(result.tool, 1)
    for fact, seconds in active_seconds(session):
        on(fact[AT]).seconds += seconds
    return Activity(session.row, tuple(days[day].done(day) for day in sorted(days)))
