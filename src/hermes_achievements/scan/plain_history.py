"""A history that uses only `list_sessions_rich` and `get_messages` of the store.

It is slower than direct row access and works with any store that plugins can use.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.metrics.tally import Tally, compute_contribution
from hermes_achievements.scan.history import (
    ChangedSession,
    HistoryPosition,
    ScannedMessage,
    ScannedSession,
    SessionKind,
)
from hermes_achievements.scan.ledger_entries import collect_facts
from hermes_core.history_rows import SCHEDULED_SOURCES, project_of
from hermes_core.json_values import number_in, text_in
from hermes_core.messages import HOOK_FEEDBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from hermes_achievements.evaluation.snapshot import Scan
    from hermes_achievements.metrics.facts import RecordedFacts
    from hermes_achievements.metrics.tally import Contribution
    from hermes_achievements.scan.history import History, LedgerEntry, MessageColumns
    from hermes_core.json_values import JsonObject, JsonValue

    Callback = Callable[[Scan, int, int], object]

T = TypeVar("T")


class MemoryLedger:
    """A ledger in memory."""

    is_shared = False

    def __init__(self) -> None:
        self._notes: dict[str, bytes] = {}
        self._entries: dict[str, tuple[int, LedgerEntry]] = {}
        self._lock = threading.Lock()

    def notes(self) -> dict[str, bytes]:
        return dict(self._notes)

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        for entry in entries:
            self._entries[entry.session_id] = (generation, entry)
        for name, value in notes.items():
            if value is None:
                self._notes.pop(name, None)
            else:
                self._notes[name] = value

    def session_ids(self, generation: int | None = None) -> list[str]:
        return [
            item
            for item, (entry_generation, _) in self._entries.items()
            if generation is None or entry_generation == generation
        ]

    def count(self) -> int:
        return len(self._entries)

    def recorded_facts(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        return {
            session_id: self._entries[session_id][1].facts
            for session_id in session_ids
            if session_id in self._entries
        }

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        for item in list(self._entries) if session_ids is None else session_ids:
            if item in self._entries:
                entry = self._entries[item][1]
                yield item, entry.first_at, entry.contribution

    def sessions_on_day(self, day: str) -> list[str]:
        return [item for item, (_, entry) in self._entries.items() if day in entry.days]

    def clear(self) -> None:
        self._notes.clear()
        self._entries.clear()

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        is_locked = self._lock.acquire(blocking=False)
        try:
            yield is_locked
        finally:
            if is_locked:
                self._lock.release()

    def size(self) -> int:
        return sum(len(entry.facts) for _, entry in self._entries.values())

    def close(self) -> None:
        """Do nothing: the ledger is in memory."""


DEFAULT_SESSION_MESSAGES: Final = 50


NO_SESSION: Final[JsonObject] = {}


class PlainStore(Protocol):
    """The store methods that a plain history needs."""

    def list_sessions_rich(
        self, *, limit: int, include_children: bool, project_compression_tips: bool
    ) -> list[JsonObject]:
        """All sessions, newest first."""

    def get_messages(self, session_id: str) -> list[JsonObject]:
        """The messages of one session."""


class PlainHistory:
    """Converts the dictionaries of a plain store into rows."""

    def __init__(self, store: PlainStore, limit: int = -1) -> None:
        self._store = store
        rows = store.list_sessions_rich(
            limit=limit, include_children=True, project_compression_tips=False
        )
        self._sessions = {text_in(row, "id"): row for row in rows}

    def position(self) -> HistoryPosition:
        return HistoryPosition()

    def version(self) -> int:
        return 0

    def is_same_history(self, position: HistoryPosition) -> bool:
        return not position.witnesses

    def session_sizes(self) -> Sequence[tuple[str, int]]:
        return [
            (item, number_in(row, "message_count") or DEFAULT_SESSION_MESSAGES)
            for item, row in self._sessions.items()
        ]

    def changed_since(self, position: HistoryPosition) -> Sequence[ChangedSession]:
        del position
        return [ChangedSession(session, False) for session in self._sessions]

    def signatures(self) -> dict[str, str]:
        return {}

    def session(self, session_id: str) -> ScannedSession | None:
        row = self._sessions.get(session_id)
        if row is None:
            return None
        return ScannedSession(
            session_id,
            self._kind(row),
            text_in(row, "source"),
            text_in(row, "model"),
            _number(row, "started_at") or 0.0,
            _number(row, "ended_at"),
            text_in(row, "end_reason"),
            bool(row.get("title")),
            number_in(row, "input_tokens"),
            number_in(row, "output_tokens"),
            number_in(row, "cache_read_tokens"),
            number_in(row, "reasoning_tokens"),
            _number(row, "actual_cost_usd") or _number(row, "estimated_cost_usd") or 0.0,
            text_in(row, "parent_session_id") or None,
            project_of(text_in(row, "cwd") or None),
        )

    def _kind(self, row: JsonObject) -> str:
        config = text_in(row, "model_config")
        parent = self._sessions.get(str(row.get("parent_session_id") or ""))
        if '"_delegate_from"' in config or row.get("source") == "subagent":
            return SessionKind.SUBAGENT
        if '"_branched_from"' in config or (parent and parent.get("end_reason") == "branched"):
            return SessionKind.BRANCH
        if parent and parent.get("end_reason") == "compression":
            return SessionKind.CONTINUATION
        is_scheduled = row.get("source") in SCHEDULED_SOURCES
        return SessionKind.SCHEDULED if is_scheduled else SessionKind.CONVERSATION

    def read_rows(
        self, session_id: str, read: Callable[[Iterable[MessageColumns]], T], after: int = 0
    ) -> T:
        session = self._sessions.get(session_id, NO_SESSION)
        started = _number(session, "started_at") or 0.0
        messages = enumerate(self._store.get_messages(session_id), 1)
        rows = (_message_row(message, number, started) for number, message in messages)
        return read(row for row in rows if row.id > after)

    def map_into_memory(self) -> None:
        """Do nothing: the store is not a file."""

    def count_rows_through(self, session_id: str, message_id: int) -> int:
        del session_id, message_id
        return -1  # unknown: the session is read completely

    def purged_facts(self, session_id: str) -> bytes | None:
        del session_id
        return None

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        rows = {
            session_id: self._sessions.get(session_id, NO_SESSION) for session_id in session_ids
        }
        titles = {item: row.get("title") or row.get("preview") for item, row in rows.items()}
        return {item: str(name) for item, name in titles.items() if name}

    def close(self) -> None:
        """Do nothing: the caller owns the store."""


def _number(row: JsonObject, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _message_row(message: JsonObject, number: int, started: float) -> ScannedMessage:
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    return ScannedMessage(
        number_in(message, "id") or number,
        text_in(message, "role"),
        _number(message, "timestamp") or started,
        _encode(content),
        len(text),
        _encode(message.get("tool_calls") or None),
        text_in(message, "tool_name") or None,
        text_in(message, "tool_call_id") or None,
        False,
        bool(message.get("observed")) or message.get("finish_reason") == HOOK_FEEDBACK,
    )


def _encode(value: JsonValue | bytes) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    return orjson.dumps(value, default=str)


def scan_plain(
    history: History, on_progress: Callback | None, every: int, zone: tzinfo = UTC
) -> Scan:
    """Scan every session of *history* without a ledger."""
    calendar = Calendar(zone)
    sizes = history.session_sizes()
    tally = Tally()
    sessions: list[dict[str, object]] = []
    for number, (session_id, _) in enumerate(sizes, 1):
        recorded = collect_facts(history, session_id)
        if recorded is not None:
            contribution = compute_contribution(recorded, calendar)
            tally.add(session_id, contribution)
            sessions.append(_session_summary(recorded, contribution))
        if on_progress is not None and number % max(1, every) == 0 and number < len(sizes):
            on_progress(_scan_document(sessions, tally, len(sizes)), number, len(sizes))
    return _scan_document(sessions, tally, len(sizes))


def _scan_document(sessions: list[dict[str, object]], tally: Tally, total: int) -> Scan:
    return {
        "sessions": sessions,
        "aggregate": compute_values(tally),
        "scan_meta": {
            "mode": "full",
            "sessions_total": total,
            "sessions_rescanned": len(sessions),
            "sessions_reused": 0,
        },
    }


def _session_summary(recorded: RecordedFacts, contribution: Contribution) -> dict[str, object]:
    totals = contribution.totals()
    return {
        "session_id": recorded.session.id,
        "source": recorded.session.source,
        "model": recorded.session.model,
        "started_at": recorded.session.started_at,
        "tool_call_count": totals.get("tool_calls", 0),
        "tool_names": sorted(contribution.seen.get("tool_kinds", {})),
        "totals": totals,
    }
