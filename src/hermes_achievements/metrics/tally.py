"""Contributions of sessions, merged into a tally in any order.

A contribution has totals per day, peaks, and the first appearance of every value. Totals can
be subtracted when a session changes. A removed peak or first appearance needs the second best
of all sessions, so the tally reports when it has to be recomputed.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_achievements.metrics.facts import ID_FIELD, TIME_FIELD
from hermes_achievements.metrics.session_view import SessionView
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.facts import RecordedFacts
    from hermes_achievements.metrics.session_view import Events

Days = dict[str, dict[str, int]]
AMOUNT_OF_EVENT: Final = itemgetter(1)  # of an event


class Contribution(NamedTuple):
    """The contribution of a session."""

    days: Days
    peaks: dict[str, int]
    seen: dict[str, dict[str, list[Any]]]  # kind: value: [at, message id]

    def pack(self) -> bytes:
        """Serialize for the ledger."""
        return orjson.dumps(tuple(self))

    @classmethod
    def unpack(cls, stored: bytes) -> Contribution:
        """Deserialize."""
        try:
            return cls(*orjson.loads(stored))
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"a contribution cannot be read: {error}") from error

    def totals(self) -> dict[str, int]:
        """Totals over all days."""
        if len(self.days) == 1:
            return next(iter(self.days.values()))
        totals: dict[str, int] = {}
        for counts in self.days.values():
            for name, amount in counts.items():
                totals[name] = totals.get(name, 0) + amount
        return totals


def compute_contribution(recorded: RecordedFacts, calendar: Calendar) -> Contribution:
    """The contribution of a session from its recorded facts."""
    session = SessionView(recorded, calendar)
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
            days.setdefault(only_day, {})[name] = sum(map(AMOUNT_OF_EVENT, events))
    peaks = {
        name: max(map(AMOUNT_OF_EVENT, events))
        for name, peak in PEAKS.items()
        if (events := peak(session))
    }
    return Contribution(days, peaks, _first_appearances(session))


def _only_day(session: SessionView) -> str | None:
    first = session.calendar.day(session.facts[0][TIME_FIELD])
    return first if first == session.calendar.day(session.facts[-1][TIME_FIELD]) else None


def _add_by_day(days: Days, name: str, events: Events, calendar: Calendar) -> None:
    for fact, amount in events:
        counts = days.setdefault(calendar.day(fact[TIME_FIELD]), {})
        counts[name] = counts.get(name, 0) + amount


def _first_appearances(session: SessionView) -> dict[str, dict[str, list[Any]]]:
    result: dict[str, dict[str, list[Any]]] = {}
    for kind, collect in VARIETY.items():
        values: dict[str, list[Any]] = {}
        for fact, value in collect(session):
            if value not in values:  # facts are in chronological order
                values[value] = [fact[TIME_FIELD], fact[ID_FIELD]]
        if values:
            result[kind] = values
    return result


class Tally:
    """The merged contributions of sessions."""

    def __init__(self) -> None:
        self.sessions = 0
        self.days: Days = {}
        self.best: dict[str, int] = {}  # maximum totals of a session
        self.peaks: dict[str, int] = {}
        self.seen: dict[str, dict[str, list[Any]]] = {}  # kind: value: [at, session, message]

    def pack(self) -> bytes:
        """Serialize for the ledger."""
        return orjson.dumps([self.sessions, self.days, self.best, self.peaks, self.seen])

    @classmethod
    def unpack(cls, stored: bytes) -> Tally:
        """Deserialize."""
        tally = cls()
        try:
            tally.sessions, tally.days, tally.best, tally.peaks, tally.seen = orjson.loads(stored)
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"the tally cannot be read: {error}") from error
        return tally

    @classmethod
    def of(cls, contributions: Iterable[tuple[str, Contribution]]) -> Tally:
        """The tally of *contributions*."""
        tally = cls()
        for session_id, contribution in contributions:
            tally.add(session_id, contribution)
        return tally

    def add(self, session_id: str, contribution: Contribution) -> None:
        """Add a session; one without activity is not counted."""
        self.sessions += bool(contribution.days)
        for day, counts in contribution.days.items():
            target = self.days.setdefault(day, {})
            for name, amount in counts.items():
                target[name] = target.get(name, 0) + amount
        _merge_maxima(self.best, contribution.totals())
        _merge_maxima(self.peaks, contribution.peaks)
        for kind, values in contribution.seen.items():
            first_seen = self.seen.setdefault(kind, {})
            for value, (at, message_id) in values.items():
                if value not in first_seen or [at, session_id, message_id] < first_seen[value]:
                    first_seen[value] = [at, session_id, message_id]

    def replace(self, session_id: str, old: Contribution, new: Contribution) -> bool:
        """Replace a contribution; returns whether the tally is exact without a recount."""
        self._subtract(old)
        is_inexact = self._loses_maximum(session_id, old, new)
        self.add(session_id, new)
        return not is_inexact

    def _subtract(self, contribution: Contribution) -> None:
        self.sessions -= bool(contribution.days)
        for day, counts in contribution.days.items():
            target = self.days.get(day, {})
            for name, amount in counts.items():
                target[name] = target.get(name, 0) - amount
                if not target[name]:
                    del target[name]
            if not target:
                self.days.pop(day, None)

    def _loses_maximum(self, session_id: str, old: Contribution, new: Contribution) -> bool:
        """Whether a maximum or a first appearance is removed without an equal replacement."""
        totals, new_totals = old.totals(), new.totals()
        return (
            any(
                self.best.get(name) == amount > new_totals.get(name, 0)
                and not (amount == 1 and self._is_counted_elsewhere(name))
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

    def _is_counted_elsewhere(self, name: str) -> bool:
        """Whether other sessions count this metric, so that the maximum is at least 1."""
        return any(counts.get(name) for counts in self.days.values())

    def merge(self, other: Tally) -> None:
        """Merge the tally of other sessions."""
        self.sessions += other.sessions
        for day, counts in other.days.items():
            target = self.days.setdefault(day, {})
            for name, amount in counts.items():
                target[name] = target.get(name, 0) + amount
        _merge_maxima(self.best, other.best)
        _merge_maxima(self.peaks, other.peaks)
        for kind, values in other.seen.items():
            first_seen = self.seen.setdefault(kind, {})
            for value, first in values.items():
                if value not in first_seen or first < first_seen[value]:
                    first_seen[value] = first


def _merge_maxima(target: dict[str, int], other: dict[str, int]) -> None:
    for name, amount in other.items():
        if amount > target.get(name, 0):
            target[name] = amount
