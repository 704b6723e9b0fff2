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
