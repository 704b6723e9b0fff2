"""Pairing codes: stored as hashes, valid for an hour, used once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from hermes_state.delivery.people import MAX_PENDING_CODES
from hermes_state.engine.sqlite.driver import sqlite3
from support.pairings import pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def db(tmp_path: Path, clock: ManualClock) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db", clock=clock) as store:
        yield store


def request_code(db: SessionDB, user: str = "u1") -> str:
    code = db.pairings.request("telegram", user, "Somebody")
    assert code is not None
    return code


def test_a_code_approves_its_user_once(db: SessionDB) -> None:
    code = request_code(db)
    assert len(code) == 8
    assert not db.pairings.is_allowed("telegram", "u1")
    approved = db.pairings.approve("telegram", f" {code.lower()} ")
    assert approved == ("telegram", "u1", "Somebody")
    assert db.pairings.is_allowed("telegram", "u1")
    assert not db.pairings.is_allowed("discord", "u1")
    assert db.pairings.approve("telegram", code) is None
    assert [user.user_id for user in db.pairings.allowed()] == ["u1"]
    assert db.pairings.revoke("telegram", "u1")
    assert not db.pairings.revoke("telegram", "u1")


def test_a_code_is_not_stored_as_text(db: SessionDB, tmp_path: Path) -> None:
    code = request_code(db)
    assert [user.user_name for user in db.pairings.pending()] == ["Somebody"]
    db.close()
    for path in tmp_path.iterdir():
        if path.is_file():
            assert code.encode() not in path.read_bytes()


def test_a_code_expires_after_an_hour(db: SessionDB, clock: ManualClock) -> None:
    code = request_code(db)
    clock.advance(3601)
    assert db.pairings.approve("telegram", code) is None
    assert db.pairings.pending() == []


def test_a_user_gets_one_code_at_a_time(db: SessionDB, clock: ManualClock) -> None:
    first = request_code(db)
    assert db.pairings.request("telegram", "u1") is None
    clock.advance(601)
    second = request_code(db)  # replaces the first
    assert db.pairings.approve("telegram", first) is None
    assert db.pairings.approve("telegram", second) is not None


def test_strangers_cannot_keep_others_from_getting_a_code(
    db: SessionDB, clock: ManualClock
) -> None:
    for number in range(MAX_PENDING_CODES):
        request_code(db, f"stranger{number}")
        clock.advance(0.01)
    code = request_code(db, "friend")
    assert len(db.pairings.pending()) == MAX_PENDING_CODES
    approved = db.pairings.approve("telegram", code)
    assert approved is not None
    assert approved.user_id == "friend"


def test_a_user_can_be_approved_as_the_owner(db: SessionDB) -> None:
    assert db.pairings.approve("telegram", request_code(db), "owner") is not None
    assert db.people.role_of("telegram", "u1") == "owner"
    db.pairings.revoke("telegram", "u1")
    assert db.people.role_of("telegram", "u1") is None


def test_an_api_key_is_stored_as_a_hash(db: SessionDB, tmp_path: Path) -> None:
    key = db.people.add_api_key("ci", "guest")
    assert key is not None
    assert db.people.add_api_key("ci", "owner") is None
    found = db.people.find_api_key(key)
    assert found is not None
    assert (found.name, found.role) == ("ci", "guest")
    assert db.people.find_api_key(key + "x") is None
    db.people.add_api_key("other", "guest")
    assert db.people.remove_api_key("other")
    assert not db.people.remove_api_key("other")
    db.close()
    assert not any(
        key.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


def test_guessing_locks_a_platform_for_a_while(db: SessionDB, clock: ManualClock) -> None:
    code = request_code(db)
    for number in range(5):
        assert db.pairings.approve("telegram", f"WRONG{number}") is None
    assert db.pairings.is_locked("telegram")
    assert db.pairings.approve("telegram", code) is None
    clock.advance(3500)
    assert db.pairings.is_locked("telegram")
    clock.advance(101)
    assert not db.pairings.is_locked("telegram")
    assert not db.pairings.is_locked("discord")


def test_concurrent_approvals_of_a_code_succeed_once(db: SessionDB, tmp_path: Path) -> None:
    code = request_code(db)
    approvals: list[object] = []
    stores = [SessionDB(tmp_path / "state.db", clock=db.clock) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda s=s: approvals.append(s.pairings.approve("telegram", code)))
        for s in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert len([approved for approved in approvals if approved]) == 1


def test_missing_tables_are_created_in_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    SessionDB(path).close()
    connection = sqlite3.connect(path)
    for name in ("hermes_allowed", "hermes_pairing", "hermes_guess", "hermes_route"):
        connection.execute(f"DROP TABLE {name}")
    connection.commit()
    connection.close()
    with SessionDB(path) as db:
        pair(db, "telegram", "u1")
        assert db.pairings.is_allowed("telegram", "u1")
        assert db.routes.all() == []
