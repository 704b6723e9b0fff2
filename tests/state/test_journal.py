"""Messages that the database refuses are journaled, reported, and stored later."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import NotSavedError
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.messages import journal
from hermes_state.upkeep.health import examine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(hermes_home: Path) -> Path:
    return hermes_home / "state.db"


@pytest.fixture
def store(path: Path):
    with SessionDB(path, busy_seconds=0.05) as db:
        db.create_session("s", "cli")
        yield db


@pytest.fixture
def lock(path: Path, store: SessionDB):
    """A connection of another program, which can hold the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def texts(db: SessionDB) -> list[str]:
    return [m["content"] for m in db.get_messages("s")]


def test_a_message_refused_by_a_lock_is_journaled_and_stored_in_order(
    store: SessionDB, lock: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    store.append_message("s", "user", "before")
    lock.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        assert store.append_message("s", "user", "one \ud83d") == 0
        assert store.append_message("s", "user", "two") == 0
    assert caplog.text.count("database rejected messages") == 1
    assert "2 messages" in store.trouble()
    assert store.get_messages("s", limit=5)[-1]["content"] == "before"
    lock.execute("COMMIT")
    assert store.append_message("s", "user", "after") > 0
    assert texts(store) == ["before", "one \ud83d", "two", "after"]
    assert store.trouble() is None


def test_a_journaled_message_is_on_disk_before_it_is_acknowledged(
    path: Path, store: SessionDB, lock: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, int] = {}  # bytes, by inode
    real_sync = os.fsync

    def sync(descriptor: int) -> None:
        real_sync(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    monkeypatch.setattr(os, "fsync", sync)
    lock.execute("BEGIN IMMEDIATE")
    for text in ("one", "two"):
        store.append_message("s", "user", text)
        (spool,) = (path.parent / "spool").iterdir()
        assert synced[spool.stat().st_ino] == spool.stat().st_size > 0
    lock.execute("COMMIT")


def test_a_journaled_message_appended_again_is_stored_once(
    store: SessionDB, lock: sqlite3.Connection
) -> None:
    uid = store.ids.new()
    lock.execute("BEGIN IMMEDIATE")
    store.append_message("s", "user", "hello", uid=uid)
    lock.execute("COMMIT")
    assert store.append_message("s", "user", "hello", uid=uid) > 0
    assert texts(store) == ["hello"]


def test_closing_stores_the_journal(path: Path) -> None:
    db = SessionDB(path, busy_seconds=0.05)
    db.create_session("s", "cli")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        db.append_message("s", "user", "hello")
        other.execute("COMMIT")
    db.close()
    with SessionDB(path) as again:
        assert texts(again) == ["hello"]


def test_the_next_process_stores_the_journal_of_a_dead_one(path: Path) -> None:
    db = SessionDB(path, busy_seconds=0.05)
    db.create_session("s", "cli")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        db.append_message("s", "user", "hello", tool_calls=[{"id": "1"}])
        db.journal.close()
        db.journal.waiting = 0
        other.execute("COMMIT")
    db.close()
    (spool,) = (path.parent / "spool").iterdir()
    with spool.open("ab") as torn:
        torn.write(b'{"session_id": "s", "uid": "torn in the mid')
    spool.rename(spool.with_name("state.db-deadbeef.jsonl"))
    assert "warning" in {f.status for f in examine(path) if f.name == "journal"}
    with SessionDB(path) as again:
        assert texts(again) == ["hello"]
        assert again.get_session("s")["tool_call_count"] == 1
    assert list((path.parent / "spool").iterdir()) == []


def test_a_missing_session_is_created_for_its_journaled_messages(
    store: SessionDB, lock: sqlite3.Connection
) -> None:
    lock.execute("BEGIN IMMEDIATE")
    store.append_message("s", "user", "hello")
    lock.execute("DELETE FROM sessions")
    lock.execute("COMMIT")
    store.create_session("other", "cli")
    store.append_message("other", "user", "x")
    assert texts(store) == ["hello"]


def test_a_failing_journal_raises_an_error(
    store: SessionDB, lock: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    lock.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(journal.os, "write", full)
    with pytest.raises(NotSavedError, match="No space left"):
        store.append_message("s", "user", "hello")
    monkeypatch.undo()
    lock.execute("COMMIT")
    assert store.append_message("s", "user", "hello") > 0
    assert texts(store) == ["hello"]


def test_an_error_of_the_caller_is_not_journaled(store: SessionDB) -> None:
    with pytest.raises(Exception, match="session not found"):
        store.append_message("nowhere", "user", "x")
    assert store.trouble() is None
