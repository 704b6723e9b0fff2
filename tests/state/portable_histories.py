"""Histories for the tests of exports, with every kind of change."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from hermes_core.clock import ManualClock
from hermes_core.errors import HermesError
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.sessions.lists import refresh_index
from state.foreign_files import make_schema_16, make_schema_26

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS: dict[str, Callable[[Path], None] | None] = {
    "new file": None,
    "schema 16": make_schema_16,
    "schema 26": make_schema_26,
}
SESSIONS = 5
texts = st.text(max_size=30)
contents = st.one_of(
    st.none(),
    texts,
    st.text(st.characters(codec=None), max_size=10),  # half surrogate pairs, too
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2),
)
numbers = st.integers(0, SESSIONS - 1)
raw_values = st.one_of(
    st.none(), texts.filter(lambda text: "\0" not in text), st.binary(max_size=5),
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False),
)  # fmt: skip
changes = st.one_of(
    st.tuples(st.just("append"), numbers, st.sampled_from(["user", "assistant", "tool"]), contents),
    st.tuples(st.just("append"), numbers, st.sampled_from(["user", "assistant"]), contents),
    st.tuples(st.just("rich"), numbers, texts, texts),
    st.tuples(st.just("foreign"), numbers, raw_values, raw_values),
    st.tuples(st.sampled_from(["undo", "redo", "retry", "pin", "read", "archive"]), numbers),
    st.tuples(st.sampled_from(["delete", "restore", "purge", "reopen"]), numbers),
    st.tuples(st.just("compact"), numbers, texts),
    st.tuples(st.just("branch"), numbers, numbers),
    st.tuples(st.just("continue"), numbers, numbers),
    st.tuples(st.just("end"), numbers, st.sampled_from(["cli_close", "compression", "idle"])),
    st.tuples(st.just("title"), numbers, texts),
    st.tuples(st.just("prompt"), numbers, texts),
    st.tuples(st.just("usage"), numbers, st.integers(0, 9), st.sampled_from(["", "title"])),
    st.tuples(st.just("meta"), numbers, texts),
)
histories = st.lists(changes, max_size=40)


def open_store(folder: Path, kind: str, name: str = "state.db") -> SessionDB:
    """Open a store of a file format, with a clock that never expires processes."""
    path = folder / name
    make = KINDS[kind]
    if make is not None:
        make(path)
    return SessionDB(path, clock=ManualClock())


def apply_changes(db: SessionDB, history: list[tuple[Any, ...]]) -> None:
    """Apply changes; those that are not possible in the current state are skipped."""
    for number in range(SESSIONS):
        db.create_session(f"s{number}", "cli", system_prompt="be brief" if number % 2 else None)
    for change, *facts in history:
        db.clock.advance(0.37)  # type: ignore[attr-defined]
        with contextlib.suppress(HermesError):
            CHANGES[change](db, f"s{facts[0]}", *facts[1:])


def _rich(db: SessionDB, session: str, text: str, more: str) -> None:
    call = {"id": text, "type": "function", "function": {"name": "f", "arguments": more}}
    db.append_message(
        session, "assistant", text, tool_calls=[call], reasoning=more, token_count=3,
        reasoning_details=[{"a": text}], finish_reason="stop", observed=True,
        platform_message_id=text, display_kind=more, api_content=text, display_metadata={"x": more},
    )  # fmt: skip


def _foreign(db: SessionDB, session: str, first: object, second: object) -> None:
    """Write rows like another program: without identity, with any value."""
    with contextlib.closing(sqlite3.connect(db.db_path, isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, token_count, timestamp, reasoning)"
            " VALUES (?, 'user', ?, ?, 1.5, ?)",
            (session, first, second, first),
        )
        connection.execute("UPDATE sessions SET user_id = ? WHERE id = ?", (second, session))
    refresh_index(db.engine)


def _branch(db: SessionDB, session: str, number: int) -> None:
    db.edits.branch(session, f"branch{number}-of-{session}")


def _continue(db: SessionDB, session: str, number: int) -> None:
    db.end_session(session, "compression")
    child = db.create_session(f"next{number}-of-{session}", "cli", parent_session_id=session)
    db.append_message(child, "user", "on we go")


CHANGES: dict[str, Callable[..., Any]] = {
    "append": lambda db, session, role, content: db.append_message(session, role, content),
    "rich": _rich,
    "foreign": _foreign,
    "undo": lambda db, session: db.edits.undo(session),
    "redo": lambda db, session: db.edits.redo(session),
    "retry": lambda db, session: db.edits.retry(session),
    "pin": lambda db, session: db.set_session_pinned(session),
    "read": lambda db, session: db.mark_session_read(session),
    "archive": lambda db, session: db.set_session_archived(session),
    "delete": lambda db, session: db.delete_session(session),
    "restore": lambda db, session: db.trash.restore(session),
    "purge": lambda db, session: db.trash.purge(session),
    "reopen": lambda db, session: db.reopen_session(session),
    "compact": lambda db, session, text: db.archive_and_compact(
        session, [{"role": "user", "content": text}]
    ),
    "branch": _branch,
    "continue": _continue,
    "end": lambda db, session, reason: db.end_session(session, reason),
    "title": lambda db, session, text: db.set_session_title(session, text),
    "prompt": lambda db, session, text: db.update_system_prompt(session, text),
    "usage": lambda db, session, count, task: db.update_token_counts(
        session, input_tokens=count, model="m", task=task, estimated_cost_usd=count / 3
    ),
    "meta": lambda db, session, text: db.update_session_meta(session, {"note": text}),
}


def export(db: SessionDB, session_ids: list[str] | None = None, **options: Any) -> bytes:
    """An export of all sessions, or of these."""
    ids = session_ids
    if ids is None:
        ids = db.portable.sessions_to_export(include_archived=True, include_trashed=True)
    return b"".join(db.portable.iter_export_file(ids, **options))
