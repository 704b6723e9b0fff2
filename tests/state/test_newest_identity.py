"""An identity greater than all stored ones is not looked up; every other one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.ids import uid_bytes
from hermes_state.messages.rows import NewMessage
from state.conftest import FILES_ONLY
from state.foreign_files import write_as_hermes_agent

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB

FAR_FUTURE = "f" * 32


@pytest.mark.parametrize("text", [FAR_FUTURE, "0" * 32, "telegram:42", "telegram:43", "", "é"])
def test_any_identity_is_stored_once(db: SessionDB, session: str, text: str) -> None:
    db.append_message(session, "user", "before", uid=db.ids.new())
    first = db.append_message(session, "user", "hello", uid=text)
    db.append_message(session, "user", "after", uid=db.ids.new())
    assert db.append_message(session, "user", "hello", uid=text) == first
    assert db.message_count(session) == 3


@pytest.mark.engines
def test_an_older_identity_stored_later_is_stored_once(db: SessionDB, session: str) -> None:
    older, newer = db.ids.new(), db.ids.new()
    db.append_message(session, "user", "newer", uid=newer)
    first = db.append_message(session, "user", "older", uid=older)
    assert db.append_message(session, "user", "older", uid=older) == first


def test_setting_the_clock_back_creates_no_duplicates(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    uid = db.ids.new()
    first = db.append_message(session, "user", "hello", uid=uid)
    clock.jump(-400 * 86_400)
    db.append_message(session, "user", "earlier", uid=db.ids.new())
    assert db.append_message(session, "user", "hello", uid=uid) == first


@FILES_ONLY
def test_an_identity_stored_by_another_process_is_recognized(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "mine", uid=db.ids.new())
    foreign_uid = db.ids.new()
    insert = (
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', 1.0)"
    )
    identify = "INSERT INTO hermes_message (uid, message_id) SELECT ?, max(id) FROM messages"
    write_as_hermes_agent(db.db_path, [(insert, (session,)), (identify, (uid_bytes(foreign_uid),))])
    assert (
        db.append_message(session, "user", "x", uid=foreign_uid)
        == db.get_messages(session)[-1]["id"]
    )
    assert db.message_count(session) == 2


def test_a_message_that_was_rolled_back_can_be_stored_again(db: SessionDB, session: str) -> None:
    uid = db.ids.new()
    pair = [{"role": "user", "content": "x", "hermes_uid": uid}]

    def fail(_tx: object) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        db.messages.save(session, [NewMessage.from_conversation(pair[0])], also=fail)
    row_id = db.append_messages_batch(session, pair)
    assert db.append_messages_batch(session, pair) == row_id
    assert db.message_count(session) == 1
