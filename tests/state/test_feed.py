"""New messages of all conversations: each is read at least once, also one committed late."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.engine.postgres.writer import BEGIN
from hermes_state.engine.postgres.writer import _begin as begin
from hermes_state.messages.pages import FeedPosition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.postgres import PostgresServer


@pytest.mark.engines
def test_messages_after_a_position_are_read_in_order(db: SessionDB) -> None:
    start = db.feed.end()
    for session_id in ("a", "b"):
        db.create_session(session_id, "cli")
        db.append_message(session_id, "user", f"one in {session_id}")
        db.append_message(session_id, "assistant", f"two in {session_id}")
    first = db.feed.after(start, 3)
    rest = db.feed.after(first.position, 3)
    texts = [(row.session_id, row.content) for row in (*first.rows, *rest.rows)]
    assert texts == [("a", "one in a"), ("a", "two in a"), ("b", "one in b"), ("b", "two in b")]
    assert db.feed.after(rest.position, 3).rows == []
    assert db.feed.end() == rest.position


@pytest.fixture
def shared_db(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionDB]:
    """A history that several processes write to."""
    with postgres.history() as url:
        monkeypatch.setenv("HERMES_STORE_URL", url)
        with SessionDB() as store:
            store.create_session("a", "cli")
            store.create_session("b", "cli")
            yield store


def read_all(db: SessionDB, position: FeedPosition) -> tuple[list[str], FeedPosition]:
    """The texts after a position, and the position after them."""
    texts: list[str] = []
    while (found := db.feed.after(position, 10)).rows:
        texts += [str(row.content) for row in found.rows]
        position = found.position
    return texts, found.position


INSERT = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)"


@contextmanager
def open_transaction(db: SessionDB, session_id: str, text: str) -> Iterator[Any]:
    """A transaction of another process that has stored a message and is not committed."""
    connection = db.engine.database._connect()
    try:
        begin(connection, BEGIN)
        connection.execute(INSERT, (session_id, text))
        yield connection
    finally:
        connection.close()


def test_a_message_is_found_however_late_it_is_committed(shared_db: SessionDB) -> None:
    db = shared_db
    start = db.feed.end()
    with open_transaction(db, "b", "late") as late:
        for number in range(300):
            db.append_message("a", "user", f"message {number}")
        texts, position = read_all(db, start)
        assert texts == [f"message {number}" for number in range(300)]
        late.execute("COMMIT")
    texts, position = read_all(db, position)
    assert (texts, position.missing) == (["late"], ())


def test_an_id_that_was_rolled_back_is_not_looked_for_forever(shared_db: SessionDB) -> None:
    db = shared_db
    start = db.feed.end()
    with open_transaction(db, "b", "no") as failed:
        failed.execute("ROLLBACK")
    db.append_message("a", "user", "yes")
    first = db.feed.after(start, 10)
    assert [row.content for row in first.rows] == ["yes"]
    assert len(first.position.missing) == 1
    assert db.feed.after(first.position, 10).position.missing == ()


def test_a_position_at_the_end_names_the_ids_that_are_being_stored(shared_db: SessionDB) -> None:
    db = shared_db
    with open_transaction(db, "b", "late") as late:
        db.append_message("a", "user", "earlier")
        position = db.feed.end()
        late.execute("COMMIT")
    assert read_all(db, position)[0] == ["late"]


def test_a_file_has_no_missing_ids(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("a", "cli")
        ids = [db.append_message("a", "user", f"message {number}") for number in range(3)]
        db.engine.write(lambda tx: tx.run("DELETE FROM messages WHERE id = ?", (ids[1],)))
        assert db.feed.end() == FeedPosition(ids[2])
        assert db.feed.after(FeedPosition(0), 10).position == FeedPosition(ids[2])
