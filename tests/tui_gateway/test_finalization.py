"""The end of a live session."""

from __future__ import annotations

from typing import Any

from hermes_state import SessionDB
from tui_gateway.finalization import finalize


def test_a_session_is_finalized_once() -> None:
    session: dict[str, Any] = {"session_key": "s", "history": []}
    with SessionDB() as db:
        db.create_session("s", "tui")
        assert finalize(session, "tui_close", lambda: db) == []
        assert (db.get_session("s") or {})["end_reason"] == "tui_close"
        db.reopen_session("s")  # another client resumes the conversation
        assert finalize(session, "tui_shutdown", lambda: db) == []
        assert (db.get_session("s") or {})["ended_at"] is None
