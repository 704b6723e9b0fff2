"""Crash recovery: the next process settles everything that a dead one held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.identities import act_as_dead_process

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


@pytest.fixture
def dead_store(open_store) -> SessionDB:
    """A store of a process that does not exist."""
    store = open_store()
    act_as_dead_process(store, "doomed")
    return store


def test_open_sessions_end_as_crashed_at_their_last_activity(
    dead_store: SessionDB, open_store, clock: ManualClock
) -> None:
    dead_store.create_session("s", "tui")
    dead_store.append_message("s", "user", "hello")
    last = clock.now()
    clock.advance(5000)
    db = open_store()
    row = db.get_session("s")
    assert (row["end_reason"], row["ended_at"]) == ("crashed", last)
    (event,) = db.boundaries.recent("s")
    assert (event.kind, event.is_final, event.platform) == ("crash", 1, "tui")


def test_ended_sessions_are_not_changed(dead_store: SessionDB, open_store) -> None:
    dead_store.create_session("s", "cli")
    dead_store.end_session("s", "cli_close")
    assert open_store().get_session("s")["end_reason"] == "cli_close"


def test_sessions_without_an_owner_stay_open(dead_store: SessionDB, open_store) -> None:
    dead_store.create_session("s", "telegram", is_owned=False)
    assert open_store().get_session("s")["ended_at"] is None


def test_a_streaming_reply_becomes_an_interrupted_message(
    dead_store: SessionDB, open_store
) -> None:
    dead_store.create_session("s", "cli")
    dead_store.append_message("s", "user", "tell me a story")
    draft = dead_store.messages.draft("s")
    draft.write("Once upon", channel="content")
    draft.flush()
    draft.write(" a time")
    draft.write("hm", channel="reasoning")
    draft.flush()
    db = open_store()
    reply = db.get_messages("s")[-1]
    assert (reply["role"], reply["content"]) == ("assistant", "Once upon a time")
    assert (reply["finish_reason"], reply["reasoning"]) == ("interrupted", "hm")
    assert db.append_message("s", "assistant", "Once", uid=draft.uid) == reply["id"]
    open_store()
    assert len(db.get_messages("s")) == 2


@pytest.mark.engines
def test_of_a_restarted_reply_only_what_came_after_is_kept(
    dead_store: SessionDB, open_store
) -> None:
    dead_store.create_session("s", "cli")
    draft = dead_store.messages.draft("s")
    draft.write("Half of")
    draft.flush()
    draft.restart()
    draft.flush()
    assert draft.text() == "Half of"  # until there is more
    draft.write("Hm.", channel="reasoning")
    draft.write("All")
    draft.flush()
    draft.write(" of it")
    draft.flush()
    assert (draft.text(), draft.text("reasoning")) == ("All of it", "Hm.")
    reply = open_store().get_messages("s")[-1]
    assert (reply["content"], reply["reasoning"]) == ("All of it", "Hm.")


def test_sessions_of_the_current_process_are_not_ended(open_store) -> None:
    store = open_store()
    store.create_session("s", "cli")
    assert open_store().get_session("s")["ended_at"] is None


@pytest.mark.engines
def test_a_dead_process_is_settled_once(dead_store: SessionDB, open_store) -> None:
    dead_store.create_session("s", "cli")
    open_store()
    open_store()
    finals = [e for e in open_store().boundaries.recent("s") if e.is_final]
    assert len(finals) == 1


def test_a_crashed_session_can_be_resumed(dead_store: SessionDB, open_store) -> None:
    dead_store.create_session("s", "cli")
    db = open_store()
    db.reopen_session("s")
    db.append_message("s", "user", "where were we")
    assert db.get_session("s")["ended_at"] is None
    assert open_store().get_session("s")["ended_at"] is None


def receive(db: SessionDB, chat: str) -> None:
    db.inbox.receive(
        platform="telegram", account="bot", chat_id=chat, message_id="1",
        session_key=f"agent:main:telegram:dm:{chat}", payload={"text": "hello"},
    )  # fmt: skip


@pytest.mark.engines
def test_a_crash_with_several_messages_is_no_attempt_of_any(
    dead_store: SessionDB, open_store
) -> None:
    for chat in ("a", "b"):
        receive(dead_store, chat)
        assert dead_store.inbox.claim() is not None
    db = open_store()
    for _ in range(2):
        message = db.inbox.claim()
        assert (message.attempts, message.crashes) == (1, 1)


@pytest.mark.engines
def test_a_crash_with_one_message_is_an_attempt(dead_store: SessionDB, open_store) -> None:
    receive(dead_store, "a")
    assert dead_store.inbox.claim() is not None
    message = open_store().inbox.claim()
    assert (message.attempts, message.crashes) == (2, 0)


@pytest.mark.engines
def test_a_reply_of_a_crashed_sender_is_sent_again_later_and_not_for_ever(
    dead_store: SessionDB, open_store, clock: ManualClock
) -> None:
    dead_store.outbox.add("k", platform="p", target={"chat_id": "c"}, payload={"text": "hi"})
    sends = 0
    while dead_store.outbox.claim() is not None:
        sends += 1
        act_as_dead_process(dead_store, f"doomed {sends}")
        db = open_store()
        if sends > 1:  # the first time it is sent again at once
            assert db.outbox.claim() is None
        clock.advance(1000)
    assert sends == 5
    [reply] = db.chats.unsent_replies()
    assert (reply.state, reply.was_ambiguous) == ("failed", False)
    assert "without confirmation" in str(reply.error)
