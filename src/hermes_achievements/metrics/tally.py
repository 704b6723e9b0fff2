"""Contributions: what each session adds, merged in any order.

A contribution holds sums by day, the session's peaks and the first appearance of every
value. Sums can be taken away again; a peak or a first appearance that is taken away may
leave a runner-up behind, so the tally says when it has to be made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_achievements.metrics.facts import ID, TIME_FIELD
from hermes_achievements.metrics.session_view import SessionFacts
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.facts import Book
    from hermes_achievements.metrics.session_view import Events

Days = dict[str, dict[str, int]]


class Contribution(NamedTuple):
    """What one session adds."""

    days: Days
    peaks: dict[str, int]
    seen: dict[str, dict[str, list[Any]]]  # kind: value: [at, message id]

    def pack(self) -> bytes:
        """The contribution as the ledger keeps it."""
        return orjson.dumps(tuple(self))

    @classmethod
    def unpack(cls, stored: bytes) -> Contribution:
        """A contribution that was packed."""
        try:
            return cls(*orjson.loads(stored))
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"a contribution cannot be read: {error}") from error

    def totals(self) -> dict[str, int]:
        """The sums over all days."""
        if len(self.days) == 1:
            return next(iter(self.days.values()))
        totals: dict[str, int] = {}
        for counts in self.days.values():
            for name, amount in counts.items():
                totals[name] = totals.get(name, 0) + amount
        return totals


def contribute(book: Book, calendar: Calendar) -> Contribution:
    """What the session of *book* adds."""
    session = SessionFacts(book, calendar)
    if not session.facts:
        return Contribution({}, {}, {})
    days: Days = {}
    only_day = _only_day(session)
    for name, metric in COUNTS.items():
        events = metric(session)
        if not events:
            continue
        if only_day is None:
            _add_by_day(days, name, events, calendar)
        else:
            days.setdefault(only_day, {})[name] = sum([amount for _, amount in events])
    peaks = {
        name: max(amount for _, amount in events)
        for name, peak in PEAKS.items()
        if (events := peak(session))
    }
    return Contribution(days, peaks, _seen(session))


def _only_day(session: SessionFacts) -> str | None:
    first = session.calendar.day(session.facts[0][TIME_FIELD])
    return first if first == session.calendar.day(session.facts[-1][TIME_FIELD]) else None


def _add_by_day(days: Days, name: str, events: Events, calendar: Calendar) -> None:
    for fact, amount in events:
        counts = days.setdefault(calendar.day(fact[TIME_FIELD]), {})
        counts[name] = counts.get(name, 0) + amount


def _seen(session: SessionFacts) -> dict[str, dict[str, list[Any]]]:
    result: dict[str, dict[str, list[Any]]] = {}
    for kind, collect in VARIETY.items():
        values: dict[str, list[Any]] = {}
        for fact, value in collect(session):
            if value not in values:  # facts come in order, so the first is the earliest
                values[value] = [fact[TIME_FIELD], fact[ID]]
        if values:
            result[kind] = values
    return result


class Tally:
    """The contributions of many sessions as one."""

    def __init__(self) -> None:
        self.sessions = 0
        self.days: Days = {}
        self.best: dict[str, int] = {}  # of one session
        self.peaks: dict[str, int] = {}
        self.seen: dict[str, dict[str, list[Any]]] = {}  # kind: value: [at, session, message]

    def pack(self) -> bytes:
        """The tally as the ledger keeps it."""
        return orjson.dumps([self.sessions, self.days, self.best, self.peaks, self.seen])

    @classmethod
    def unpack(cls, stored: bytes) -> Tally:
        """A tally that was packed."""
        tally = cls()
        try:
            tally.sessions, tally.days, tally.best, tally.peaks, tally.seen = orjson.loads(stored)
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"the tally cannot be read: {error}") from error
        return tally

    @classmethod
    def of(cls, contributions: Iterable[tuple[str, Contribution]]) -> Tally:
        """The tally of all of *contributions*."""
        tally = cls()
        for session_id, contribution in contributions:
            tally.add(session_id, contribution)
        return tally

    def add(self, session_id: str, contribution: Contribution) -> None:
        """One session more; one in which nothing happened is none."""
        self.sessions += bool(contribution.days)
        for day, counts in contribution.days.items():
            into = self.days.setdefault(day, {})
            for name, amount in counts.items():
                into[name] = into.get(name, 0) + amount
        _raise(self.best, contribution.totals())
        _raise(self.peaks, contribution.peaks)
        for kind, values in contribution.seen.items():
            known = self.seen.setdefault(kind, {})
            for value, (at, message_id) in values.items():
                if value not in known or [at, session_id, message_id] < known[value]:
                    known[value] = [at, session_id, message_id]

    def replace(self, session_id: str, old: Contribution, new: Contribution) -> bool:
        """One session changed; whether the tally is exact without counting anew."""
        self._subtract(old)
        lost = self._lost(session_id, old, new)
        self.add(session_id, new)
        return not lost

    def _subtract(self, contribution: Contribution) -> None:
        self.sessions -= bool(contribution.days)
        for day, counts in contribution.days.items():
            into = self.days.get(day, {})
            for name, amount in counts.items():
                into[name] = into.get(name, 0) - amount
                if not into[name]:
                    del into[name]
            if not into:
                self.days.pop(day, None)

    def _lost(self, session_id: str, old: Contribution, new: Contribution) -> bool:
        """Whether a best or a first appearance is taken away that nobody brings back."""
        totals, new_totals = old.totals(), new.totals()
        return (
            any(
                self.best.get(name) == amount > new_totals.get(name, 0)
                and not (amount == 1 and self._is_left(name))
                for name, amount in totals.items()
            )
            or any(
                self.peaks.get(name) == amount > new.peaks.get(name, 0)
                for name, amount in old.peaks.items()
            )
            or any(
                self.seen.get(kind, {}).get(value, [None, None])[1] == session_id
                and new.seen.get(kind, {}).get(value, [float("inf")]) > first
                for kind, values in old.seen.items()
                for value, first in values.items()
            )
        )

    def _is_left(self, name: str) -> bool:
        """Whether other sessions have some of it, so that the best is still at least 1."""
        return any(counts.get(name) for counts in self.days.values())

    def merge(self, other: Tally) -> None:
        """Take in the tally of other sessions."""
        self.sessions += other.sessions
        for day, counts in other.days.items():
            into = self.days.setdefault(day, {})
            for name, amount in counts.items():
                into[name] = into.get(name, 0) + amount
        _raise(self.best, other.best)
        _raise(self.peaks, other.peaks)
        for kind, values in other.seen.items():
            known = self.seen.setdefault(kind, {})
            for value, first in values.items():
                if value not in known or first < known[value]:
                    known[value] = first


def _raise(into: dict[str, int], other: dict[str, int]) -> None:
    for name, amount in other.items():
        if amount > into.get(name, 0):
            into[name] = amount
