"""Rows of the store with the fields that a test needs."""

from __future__ import annotations

from typing import Any

from hermes_state.messages.rows import MessageRow
from hermes_state.search.hits import FoundMessage
from hermes_state.sessions.records import ListedSession, SessionRow


def session_row(session_id: str = "s", **fields: Any) -> SessionRow:
    """A session; fields that are not given are empty."""
    counts = {name: 0 for name in SessionRow._fields if name.endswith(("_count", "_tokens"))}
    empty = dict.fromkeys(SessionRow._fields) | counts | {"source": "cli", "started_at": 0.0}
    empty |= {"archived": 0, "pinned": 0, "hidden": 0, "expiry_finalized": 0, "others": ()}
    return SessionRow(**{**empty, "id": session_id, **fields})


def listed_session(session_id: str = "s", *, last_active: float = 0.0, **fields: Any) -> Any:
    """A session in a list."""
    return ListedSession(session_row(session_id, **fields), "", last_active, session_id, "root")


def message_row(**fields: Any) -> MessageRow:
    """A message; fields that are not given are empty."""
    empty = dict.fromkeys(MessageRow._fields) | {"id": 1, "session_id": "s", "role": "user"}
    return MessageRow(**{**empty, "timestamp": 0.0, "active": 1, "others": (), **fields})


def found_message(session_id: str, **fields: Any) -> FoundMessage:
    """A search result."""
    empty = dict.fromkeys(FoundMessage._fields, "") | {"id": 1, "offsets": (), "timestamp": 0.0}
    return FoundMessage(**{**empty, "context": [], "session_id": session_id, **fields})
