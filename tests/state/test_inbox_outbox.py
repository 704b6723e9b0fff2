"""Inbox and outbox: messages are processed once, replies are stored until they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import StoreError
from hermes_state.delivery import inbox, nodes, outbox, rows
from hermes_state.delivery.inbox import PausedPlace
from support.identities import act_as, act_as_dead_process

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


def receive(db: SessionDB, number: int, chat: str = "c1") -> rows.ReceivedMessage:
    return db.inbox.receive(
        platform="telegram", account="bot", chat_id=chat, message_id=str(number),
        session_key=f"agent:main:telegram:dm:{chat}", payload={"text": f"message {number}"},
    )  # fmt: skip


def test_a_repeated_delivery_is_recognized(db: SessionDB) -> None:
    first = receive(db, 1)
    again = receive(db, 1)
    assert first.is_new
    assert again == rows.ReceivedMessage(first.inbox_id, is_new=False)


@pytest.mark.engines
def test_messages_of_one_place_are_handled_in_order_one_at_a_time(db: SessionDB) -> None:
    for number in (1, 2):
        receive(db, number)
    receive(db, 3, chat="c2")
    first = db.inbox.claim()
    other = db.inbox.claim()
    assert first.payload == {"text": "message 1"}
    assert other.payload == {"text": "message 3"}
    assert db.inbox.claim() is None
    db.inbox.settle(first.inbox_id, session_id="s")
    assert db.inbox.claim(first.session_key).payload == {"text": "message 2"}


@pytest.mark.engines
def test_a_place_comes_first_and_others_only_if_asked_for(
    db: SessionDB, clock: ManualClock
) -> None:
    for number, chat in enumerate(("c1", "c2", "c3", "c4"), 1):
        receive(db, number, chat)
    keys = [f"agent:main:telegram:dm:c{number}" for number in range(1, 5)]
    second = db.inbox.claim(keys[1], or_any=True)
    assert second.session_key == keys[1]
    assert db.inbox.claim(keys[1]) is None
    paused = PausedPlace(keys[0], clock.now() + 60, "telegram", "u")
    db.paused_places.pause(db.inbox.claim(keys[0]), paused)
    db.engine.write(lambda tx: tx.run(nodes.BIND, (keys[2], "another node")))
    for key in (keys[0], keys[2]):
        assert db.inbox.claim(key) is None
    assert db.inbox.claim(keys[0], or_any=True).session_key == keys[3]
    assert db.inbox.claim(keys[1], or_any=True) is None
    clock.advance(61)
    first = db.inbox.claim(keys[2], or_any=True)
    assert (first.session_key, first.attempts) == (keys[0], 1)


def test_a_released_message_is_claimed_again(db: SessionDB) -> None:
    receive(db, 1)
    claimed = db.inbox.claim()
    db.inbox.requeue(claimed, is_attempt=False)
    assert db.inbox.claim().attempts == 1  # a release does not count as an attempt


def test_waiting_messages_are_claimed_with_the_first(db: SessionDB) -> None:
    for number in (1, 2, 3):
        receive(db, number)
    first = db.inbox.claim()
    following = [row.inbox_id for row in db.inbox.waiting_behind(first)]
    assert following == [first.inbox_id + 1, first.inbox_id + 2]
    assert db.inbox.claim_with(following[:1]) == following[:1]
    assert db.inbox.claim_with(following) == following[1:]
    assert db.inbox.waiting_places() == 0


def test_only_the_claiming_process_can_settle(db: SessionDB) -> None:
    received = receive(db, 1)
    with pytest.raises(StoreError, match="not claimed"):
        db.inbox.settle(received.inbox_id)


def test_a_message_that_another_process_has_claimed_cannot_be_settled(open_store) -> None:
    store, other = open_store(), open_store()
    act_as(other, other.identity._replace(process_id="other"))
    receive(store, 1)
    claimed = other.inbox.claim()
    with pytest.raises(StoreError, match="not claimed"):
        store.inbox.settle(claimed.inbox_id)
    assert store.inbox.get(claimed.inbox_id).state == "claimed"
    other.inbox.settle(claimed.inbox_id)


def test_the_claims_of_a_dead_process_are_released(open_store) -> None:
    store = open_store()
    act_as_dead_process(store, "dead")
    receive(store, 1)
    store.outbox.add("k", platform="telegram", target={"chat": 1}, payload={"text": "hi"})
    assert store.inbox.claim() is not None
    assert store.outbox.claim().was_ambiguous is False
    next_store = open_store()
    assert next_store.inbox.claim().attempts == 2
    reply = next_store.outbox.claim()
    assert reply.was_ambiguous is True
    assert reply.payload == {"text": "hi"}


@pytest.mark.engines
def test_a_reply_is_committed_with_its_turn(db: SessionDB, session: str) -> None:
    receive(db, 1)
    claimed = db.inbox.claim()

    def finish(tx) -> None:
        outbox.insert_reply(
            tx, "turn-1", platform="telegram", target={"chat": 1}, payload={"text": "hi"}
        )
        inbox.settle(tx, claimed.inbox_id, db.identity.process_id, session)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        db.engine.write(finish)
    assert db.outbox.claim() is None
    db.inbox.settle(claimed.inbox_id)


def test_a_reply_is_stored_and_sent_once(db: SessionDB) -> None:
    reply = {"platform": "matrix", "target": {"room": "!a:b"}, "payload": {"text": "x"}}
    assert db.outbox.add("key", **reply) == db.outbox.add("key", **reply)
    claimed = db.outbox.claim()
    assert db.outbox.claim() is None
    db.outbox.settle(claimed.outbox_id, receipt="event-1")
    assert db.outbox.claim() is None


def count_attempts(
    db: SessionDB, clock: ManualClock, seconds: float, *, may_have_arrived: bool
) -> int:
    """Number of attempts for a reply that is never sent."""
    db.outbox.add("key", platform="matrix", target={}, payload={})
    attempts = 0
    for _ in range(30):
        claimed = db.outbox.claim()
        if claimed is not None:
            attempts += 1
            number = claimed.outbox_id
            db.outbox.postpone(number, "no route", may_have_arrived=may_have_arrived)
            assert db.outbox.claim() is None
        clock.advance(seconds)
    return attempts


def test_a_reply_is_retried_for_days(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 700, may_have_arrived=False) == 30
    assert db.chats.unsent_replies() == []


def test_after_a_week_a_reply_is_given_up(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 86400, may_have_arrived=False) == 8
    assert [row.state for row in db.chats.unsent_replies()] == ["failed"]


def test_attempts_that_may_have_arrived_are_limited(db: SessionDB, clock: ManualClock) -> None:
    assert count_attempts(db, clock, 700, may_have_arrived=True) == 5
    assert [row.state for row in db.chats.unsent_replies()] == ["failed"]
