"""Inbox and outbox: messages are processed once, replies are stored until they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import StoreError
from hermes_state.delivery import inbox, outbox

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


def receive(db: SessionDB, number: int, chat: str = "c1") -> inbox.ReceivedMessage:
    return db.receive(
        platform="telegram", account="bot", chat_id=chat, message_id=str(number),
        session_key=f"agent:main:telegram:dm:{chat}", payload={"text": f"message {number}"},
    )  # fmt: skip


def test_a_repeated_delivery_is_recognized(db: SessionDB) -> None:
    first = receive(db, 1)
    again = receive(db, 1)
    assert first.is_new
    assert again == inbox.ReceivedMessage(first.inbox_id, is_new=False)


def test_messages_of_one_place_are_handled_in_order_one_at_a_time(db: SessionDB) -> None:
    for number in (1, 2):
        receive(db, number)
    receive(db, 3, chat="c2")
    first = db.claim_incoming()
    other = db.claim_incoming()
    assert first["payload"] == {"text": "message 1"}
    assert other["payload"] == {"text": "message 3"}
    assert db.claim_incoming() is None
    db.settle_incoming(first["inbox_id"], session_id="s")
    assert db.claim_incoming(first["session_key"])["payload"] == {"text": "message 2"}


def test_a_released_message_is_claimed_again(db: SessionDB) -> None:
    receive(db, 1)
    claimed = db.claim_incoming()
    db.release_incoming(claimed["inbox_id"])
    assert db.claim_incoming()["attempts"] == 1  # a release does not count as an attempt


def test_waiting_messages_are_claimed_with_the_first(db: SessionDB) -> None:
    for number in (1, 2, 3):
        receive(db, number)
    first = db.claim_incoming()
    following = [row["inbox_id"] for row in db.waiting_behind(first)]
    assert following == [first["inbox_id"] + 1, first["inbox_id"] + 2]
    assert db.claim_with(following[:1]) == following[:1]
    assert db.claim_with(following) == following[1:]
    assert db.waiting_places() == 0


def test_only_the_claiming_process_can_settle(db: SessionDB) -> None:
    received = receive(db, 1)
    with pytest.raises(StoreError, match="not claimed"):
        db.settle_incoming(received.inbox_id)


def test_a_message_that_another_process_has_claimed_cannot_be_settled(open_store) -> None:
    store, other = open_store(), open_store()
    other.identity = other.identity._replace(process_id="other")
    receive(store, 1)
    claimed = other.claim_incoming()
    with pytest.raises(StoreError, match="not claimed"):
        store.settle_incoming(claimed["inbox_id"])
    assert store.incoming(claimed["inbox_id"])["state"] == "claimed"
    other.settle_incoming(claimed["inbox_id"])


def test_the_claims_of_a_dead_process_are_released(open_store) -> None:
    store = open_store()
    store.identity = store.identity._replace(process_id="dead", pid=2**22 + 1, birth="1")
    receive(store, 1)
    store.owe_reply("k", platform="telegram", target={"chat": 1}, payload={"text": "hi"})
    assert store.claim_incoming() is not None
    assert store.claim_reply()["was_ambiguous"] is False
    next_store = open_store()
    assert next_store.claim_incoming()["attempts"] == 2
    reply = next_store.claim_reply()
    assert reply["was_ambiguous"] is True
    assert reply["payload"] == {"text": "hi"}


def test_a_reply_is_committed_with_its_turn(db: SessionDB, session: str) -> None:
    receive(db, 1)
    claimed = db.claim_incoming()

    def finish(tx) -> None:
        outbox.insert_reply(
            tx, "turn-1", platform="telegram", target={"chat": 1}, payload={"text": "hi"}
        )
        inbox.settle(tx, claimed["inbox_id"], db.identity.process_id, session)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        db.engine.write(finish)
    assert db.claim_reply() is None
    db.settle_incoming(claimed["inbox_id"])


def test_a_reply_is_stored_and_sent_once(db: SessionDB) -> None:
    reply = {"platform": "matrix", "target": {"room": "!a:b"}, "payload": {"text": "x"}}
    assert db.owe_reply("key", **reply) == db.owe_reply("key", **reply)
    claimed = db.claim_reply()
    assert db.claim_reply() is None
    db.settle_reply(claimed["outbox_id"], receipt="event-1")
    assert db.claim_reply() is None


def count_attempts(
    db: SessionDB, clock: ManualClock, seconds: float, *, may_have_arrived: bool
) -> int:
    """Number of attempts for a reply that is never sent."""
    db.owe_reply("key", platform="matrix", target={}, payload={})
    attempts = 0
    for _ in range(30):
        claimed = db.claim_reply()
        if claimed is not None:
            attempts += 1
            number = claimed["outbox_id"]
            db.postpone_reply(number, "no route", may_have_arrived=may_have_arrived)
            assert db.claim_reply() is None
        clock.advance(seconds)
    return attempts


def test_a_reply_is_retried_for_days(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 700, may_have_arrived=False) == 30
    assert db.unsent_replies() == []


def test_after_a_week_a_reply_is_given_up(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 86400, may_have_arrived=False) == 8
    assert [row["state"] for row in db.unsent_replies()] == ["failed"]


def test_attempts_that_may_have_arrived_are_limited(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 700, may_have_arrived=True) == 10
    assert [row["state"] for row in db.unsent_replies()] == ["failed"]
