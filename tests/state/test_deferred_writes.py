"""Writes that share the next commit of the process."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite import writer
from hermes_state.repository import UPSERT_META
from state.conftest import FILES_ONLY
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.engine.transaction import Tx

NOTE = "INSERT INTO state_meta (key, value) VALUES (?, ?)"
MINUTE = 60.0


def add_note(db: SessionDB, key: str) -> None:
    db.engine.write_soon(lambda tx: tx.run(NOTE, (key, "x")), "add a note")


def add_wrong_note(db: SessionDB) -> None:
    db.engine.write_soon(lambda tx: tx.run("INSERT INTO nowhere VALUES (1)"), "add a wrong note")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deferred writes wait for the next commit only."""
    monkeypatch.setattr(writer, "SOON_SECONDS", MINUTE)


@pytest.mark.engines
@pytest.mark.usefixtures("patient")
def test_several_deferred_writes_share_the_next_commit(db: SessionDB) -> None:
    db.set_meta("first", "x")
    before = db.engine.commits
    for number in range(5):
        add_note(db, f"note {number}")
    db.set_meta("second", "x")
    assert db.engine.commits < before + 5  # one, and those of the work in the background
    assert db.get_meta("note 4") == "x"


@pytest.mark.engines
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("has_own_write", [False, True])
def test_what_another_thread_is_committing_is_waited_for(
    db: SessionDB, has_own_write: bool
) -> None:
    is_writing, may_commit = threading.Event(), threading.Event()
    seen: list[str | None] = []

    def write_slowly(_tx: Tx) -> None:
        is_writing.set()
        may_commit.wait(PATIENCE_SECONDS)

    def look() -> None:
        if has_own_write:
            db.set_meta("own", "x")
        else:
            db.engine.flush()
        seen.append(db.get_meta("note"))

    add_note(db, "note")
    committing = threading.Thread(target=db.engine.write, args=(write_slowly,))
    committing.start()
    assert is_writing.wait(PATIENCE_SECONDS)
    looking = threading.Thread(target=look)
    looking.start()
    looking.join(0.5)  # it waits, or has seen nothing
    may_commit.set()
    looking.join(PATIENCE_SECONDS)
    committing.join(PATIENCE_SECONDS)
    assert seen == ["x"]


@pytest.mark.usefixtures("patient")
def test_a_later_write_sees_the_deferred_ones(db: SessionDB) -> None:
    add_note(db, "note")
    sql = "SELECT value FROM state_meta WHERE key = 'note'"
    assert db.engine.write(lambda tx: tx.value(sql)) == "x"


def test_a_deferred_write_does_not_wait_for_another_one_for_ever(db: SessionDB) -> None:
    add_note(db, "note")
    wait_until(lambda: db.get_meta("note") == "x")


def test_deferred_writes_keep_their_order(db: SessionDB) -> None:
    for value in ("first", "second", "third"):
        db.engine.write_soon(
            lambda tx, value=value: tx.run(UPSERT_META, ("note", value)), "set a note"
        )
    wait_until(lambda: db.get_meta("note") is not None)
    assert db.get_meta("note") == "third"


@pytest.mark.usefixtures("patient")
def test_closing_the_store_stores_what_was_deferred(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        add_note(db, "note")
    with SessionDB(tmp_path / "state.db") as db:
        assert db.get_meta("note") == "x"


@pytest.mark.usefixtures("patient")
def test_a_deferred_write_that_fails_harms_no_other(
    db: SessionDB, caplog: pytest.LogCaptureFixture
) -> None:
    add_note(db, "before")
    add_wrong_note(db)
    add_note(db, "after")
    with caplog.at_level(logging.ERROR):
        db.set_meta("own", "x")
    assert [db.get_meta(key) for key in ("before", "after", "own")] == ["x", "x", "x"]
    assert "add a wrong note failed" in caplog.text


@FILES_ONLY
def test_a_deferred_write_is_repeated_while_the_database_refuses_it(db: SessionDB) -> None:
    db.set_meta("own", "x")

    def set_size_limit(tx: Tx) -> int:
        pages = int(tx.value("PRAGMA page_count"))
        return int(tx.value(f"PRAGMA max_page_count = {pages}"))

    db.engine.write(set_size_limit)
    large = "x" * 100_000
    db.engine.write_soon(lambda tx: tx.run(NOTE, ("large", large)), "add a large note")
    is_refused = threading.Event()
    assert not is_refused.wait(0.5)
    assert db.get_meta("large") is None
    db.engine.write(lambda tx: tx.value("PRAGMA max_page_count = 1000000"))
    wait_until(lambda: db.get_meta("large") == large)
