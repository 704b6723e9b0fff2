"""The history of OpenClaw: resets, summaries, sub-agents and forks."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    Importing = Callable[[str, Path], SourceReport]
    Copying = Callable[[str], Path]

DATABASE = ".openclaw/agents/main/agent/openclaw-agent.sqlite"
SESSION = "1393954f-9346-43eb-a098-b75f27cb6df4"
KEY = "agent:main:evening"
NAVIGATION = {
    "version": 1, "report": {"kind": "ignored"}, "navigation": {}, "reset": {}, "model": {},
    "modelBytes": 0, "modelWithoutCheckpointBytes": 0, "withoutCustomDataBytes": 0,
}  # fmt: skip


class Writer:
    """Writes to a database as OpenClaw does."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.connection = sqlite3.connect(home / DATABASE, isolation_level=None)

    def event(self, session: str, *, is_compressed: bool = False, **event: Any) -> None:
        last = "SELECT coalesce(max(seq), -1) + 1 FROM transcript_events WHERE session_id = ?"
        number = self.connection.execute(last, (session,)).fetchone()[0]
        text = json.dumps({"id": f"{session}:{number}", **event})
        values: tuple[object, ...] = (text, None, None, None)
        if is_compressed:
            packed = zstd.compress(text.encode())
            values = (None, packed, len(text), json.dumps(NAVIGATION))
        self.connection.execute(
            "INSERT INTO transcript_events (session_id, seq, created_at, event_json, event_zstd,"
            " event_utf8_bytes, navigation_json) VALUES (?, ?, 1794793600000, ?, ?, ?, ?)",
            (session, number, *values),
        )

    def message(self, session: str, text: str, role: str = "user", **options: Any) -> None:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        self.event(session, type="message", message=message, **options)

    def session(self, name: str, key: str, **node: str) -> None:
        columns = {"session_key": key, "current_session_id": name, "entry_json": "{}", **node}
        self.connection.execute(
            f"INSERT INTO session_nodes ({', '.join(columns)}, updated_at)"
            f" VALUES ({'?, ' * len(columns)} 0)",
            list(columns.values()),
        )
        self.connection.execute(
            "INSERT INTO session_windows (session_id, session_key, created_at, updated_at)"
            " VALUES (?, ?, 1794793600000, 1794793600000)",
            (name, key),
        )


@pytest.fixture
def writer(sample_copy: Copying) -> Iterator[Writer]:
    writer = Writer(sample_copy("openclaw"))
    with closing(writer.connection):
        yield writer


def contents(db: SessionDB, name: str = SESSION, *, is_active: bool = False) -> list[str]:
    where = " AND active = 1" if is_active else ""
    sql = f"SELECT content FROM messages WHERE session_id = ?{where} ORDER BY id"
    found = db.engine.read(lambda reader: reader.rows(sql, (f"openclaw-{name}",)))
    return [content for (content,) in found]


def test_only_new_events_of_a_conversation_are_read(
    db: SessionDB, import_from: Importing, writer: Writer
) -> None:
    import_from("openclaw", writer.home)
    before = contents(db)
    writer.message(SESSION, "One more.", is_compressed=True)
    writer.event(SESSION, type="hologram")
    report = import_from("openclaw", writer.home)
    assert (report.extended, report.messages, dict(report.unknown)) == (1, 1, {"hologram": 1})
    assert contents(db) == [*before, "One more."]


def test_a_message_after_a_reset_begins_a_new_context_of_the_same_conversation(
    db: SessionDB, import_from: Importing, writer: Writer
) -> None:
    writer.event(SESSION, type="reset", reason="new")
    import_from("openclaw", writer.home)  # the reset is remembered until the next message
    before = contents(db)
    assert contents(db, is_active=True) == before
    writer.message(SESSION, "Something else.")
    writer.message(SESSION, "Yes?", "assistant")
    import_from("openclaw", writer.home)
    assert contents(db) == [*before, "Something else.", "Yes?"]
    assert contents(db, is_active=True) == ["Something else.", "Yes?"]


def test_a_summary_replaces_the_context_before_it(
    db: SessionDB, import_from: Importing, writer: Writer
) -> None:
    writer.event(SESSION, type="compaction", summary="We talked.", tokensBefore=9)
    writer.message(SESSION, "And now?")
    import_from("openclaw", writer.home)
    assert contents(db, is_active=True) == ["We talked.", "And now?"]


def test_subagents_and_forks_have_their_parents(
    db: SessionDB, import_from: Importing, writer: Writer
) -> None:
    writer.session("sub", "agent:main:subagent:1", parent_session_key=KEY)
    writer.message("sub", "[Subagent Context] Look.")
    writer.session("fork", "agent:main:fork", fork_source_session_id=SESSION, label="A fork")
    writer.message("fork", "Otherwise?")
    import_from("openclaw", writer.home)
    sql = "SELECT id, source, parent_session_id, title FROM sessions WHERE id IN (?, ?) ORDER BY id"
    names = ("openclaw-fork", "openclaw-sub")
    found = db.engine.read(lambda reader: reader.rows(sql, names))
    assert [tuple(row) for row in found] == [
        ("openclaw-fork", "openclaw", f"openclaw-{SESSION}", "A fork"),
        ("openclaw-sub", "subagent", f"openclaw-{SESSION}", None),
    ]


def test_events_that_were_rewritten_are_read_again(
    db: SessionDB, import_from: Importing, writer: Writer
) -> None:
    import_from("openclaw", writer.home)
    before = contents(db)
    change = "UPDATE transcript_rewrite_watermarks SET generation = 'next' WHERE session_id = ?"
    writer.connection.execute(change, (SESSION,))
    sql = "UPDATE transcript_events SET event_json = ? WHERE session_id = ? AND seq = 1"
    message = {"role": "user", "content": "Moved here."}
    event = json.dumps({"type": "message", "id": "moved", "message": message})
    writer.connection.execute(sql, (event, SESSION))
    writer.message(SESSION, "One more.")
    report = import_from("openclaw", writer.home)
    assert report.messages == 2
    assert contents(db) == [*before, "Moved here.", "One more."]
