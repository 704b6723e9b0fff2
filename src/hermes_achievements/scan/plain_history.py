"""A history behind the two oldest calls of the store: list the sessions, get the messages.

Slower than a store that offers its rows itself, and enough for any store that plugins
know how to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import orjson

from hermes_achievements.scan.history import Changed, Kind, Mark, MessageRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SIZE = 50
SCHEDULED_SOURCES = frozenset({"cron", "cronjob", "schedule"})


class PlainStore(Protocol):
    """What is asked of the store."""

    def list_sessions_rich(
        self, *, limit: int, include_children: bool, project_compression_tips: bool
    ) -> list[dict[str, Any]]:
        """All sessions, the newest first."""

    def get_messages(self, session_id: str) -> list[dict[str, Any]]:
        """The messages of one session."""


class PlainHistory:
    """Sessions and messages as dictionaries, made into rows."""

    def __init__(self, store: PlainStore, limit: int = -1) -> None:
        self._store = store
        rows = store.list_sessions_rich(
            limit=limit, include_children=True, project_compression_tips=False
        )
        self._sessions = {str(row["id"]): row for row in rows}

    def mark(self) -> Mark:
        return Mark()

    def version(self) -> int:
        return 0

    def is_same(self, mark: Mark) -> bool:
        return not mark.witnesses

    def everything(self) -> Sequence[tuple[str, int]]:
        return [(one, int(row.get("message_count") or SIZE)) for one, row in self._sessions.items()]

    def changed_since(self, mark: Mark) -> Sequence[Changed]:
        del mark
        return [Changed(one, False) for one in self._sessions]

    def signatures(self) -> dict[str, str]:
        return {}

    def session(self, session_id: str) -> SessionRow | None:
        row = self._sessions.get(session_id)
        if row is None:
            return None
        cost = row.get("actual_cost_usd") or row.get("estimated_cost_usd") or 0.0
        return SessionRow(
            session_id,
            self._kind(row),
            str(row.get("source") or ""),
            str(row.get("model") or ""),
            float(row.get("started_at") or 0.0),
            row.get("ended_at"),
            str(row.get("end_reason") or ""),
            bool(row.get("title")),
            int(row.get("input_tokens") or 0),
            int(row.get("output_tokens") or 0),
            int(row.get("cache_read_tokens") or 0),
            int(row.get("reasoning_tokens") or 0),
            float(cost),
            row.get("parent_session_id"),
        )

    def _kind(self, row: dict[str, Any]) -> str:
        config = str(row.get("model_config") or "")
        parent = self._sessions.get(str(row.get("parent_session_id") or ""))
        if '"_delegate_from"' in config or row.get("source") == "subagent":
            return Kind.SUBAGENT
        if '"_branched_from"' in config or (parent and parent.get("end_reason") == "branched"):
            return Kind.BRANCH
        if parent and parent.get("end_reason") == "compression":
            return Kind.CONTINUATION
        is_scheduled = row.get("source") in SCHEDULED_SOURCES
        return Kind.SCHEDULED if is_scheduled else Kind.CONVERSATION

    def each_row(
        self, session_id: str, take: Callable[[MessageRow], object], after: int = 0
    ) -> None:
        session = self._sessions.get(session_id, {})
        started = float(session.get("started_at") or 0.0)
        for number, message in enumerate(self._store.get_messages(session_id), 1):
            row = _row(message, number, started)
            if row.id > after:
                take(row)

    def rows_through(self, session_id: str, message_id: int) -> int:
        del session_id, message_id
        return -1  # not known: such a session is read anew

    def kept(self, session_id: str) -> bytes | None:
        del session_id
        return None

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        rows = {one: self._sessions.get(one, {}) for one in session_ids}
        named = {one: row.get("title") or row.get("preview") for one, row in rows.items()}
        return {one: str(name) for one, name in named.items() if name}

    def close(self) -> None:
        """The store belongs to somebody else."""


def _row(message: dict[str, Any], number: int, started: float) -> MessageRow:
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    return MessageRow(
        int(message.get("id") or number),
        str(message.get("role") or ""),
        float(message.get("timestamp") or started),
        _bytes(content),
        len(text),
        _bytes(message.get("tool_calls") or None),
        message.get("tool_name"),
        message.get("tool_call_id"),
        False,
        bool(message.get("observed")),
    )


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    return orjson.dumps(value, default=str)
