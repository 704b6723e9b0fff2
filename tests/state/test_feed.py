"""New messages of all conversations: each is read at least once, also one committed late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_state.messages.feed import FeedPosition

if TYPE_CHECKING:
    from hermes_state import SessionDB


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


@pytest.mark.engines
def test_a_message_that_was_missing_is_looked_for_again(db: SessionDB) -> None:
    db.create_session("a", "cli")
    ids = [db.append_message("a", "user", f"message {number}") for number in range(3)]
    # Another process had not committed the second one when the third was read.
    position = FeedPosition(ids[2], (ids[1],))
    found = db.feed.after(position, 10)
    assert [row.id for row in found.rows] == [ids[1]]
    assert ids[1] not in found.position.missing
