"""What a process that died was carrying is finished by whoever comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


@pytest.fixture
def doomed(open_store) -> SessionDB:
    """A store whose process does not exist."""
    store = open_store()
    store.identity = store.identity._replace(process_id="doomed", pid=2**22 + 1, birth="1")
    return store


def test_its_open_sessions_end_as_crashed_at_their_last_activity(
    doomed: SessionDB, open_store, clock: ManualClock
) -> None:
    doomed.create_session("s", "tui")
    doomed.append_message("s", "user", "hello")
    last = clock.now()
    clock.advance(5000)
    db = open_store()
    row = db.get_session("s")
    assert (row["end_reason"], row["ended_at"]) == ("crashed", last)
    (event,) = db.list_boundaries("s")
    assert (event["kind"], event["is_final"], event["platform"]) == ("crash", 1, "tui")


def test_its_ended_sessions_are_left_alone(doomed: SessionDB, open_store) -> None:
    doomed.create_session("s", "cli")
    doomed.end_session("s", "cli_close")
    assert open_store().get_session("s")["end_reason"] == "cli_close"


def test_its_released_sessions_stay_open(doomed: SessionDB, open_store) -> None:
    doomed.create_session("s", "telegram")
    doomed.release_session("s")
    assert open_store().get_session("s")["ended_at"] is None


def test_its_streaming_reply_becomes_an_interrupted_message(doomed: SessionDB, open_store) -> None:
    doomed.create_session("s", "cli")
    doomed.append_message("s", "user", "tell me a story")
    draft = doomed.draft("s")
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


def test_our_own_sessions_are_not_swept(open_store) -> None:
    store = open_store()
    store.create_session("s", "cli")
    assert open_store().get_session("s")["ended_at"] is None


def test_two_openers_bury_the_dead_once(doomed: SessionDB, open_store) -> None:
    doomed.create_session("s", "cli")
    open_store()
    open_store()
    finals = [e for e in open_store().list_boundaries("s") if e["is_final"]]
    assert len(finals) == 1


def test_a_crashed_session_can_be_resumed(doomed: SessionDB, open_store) -> None:
    doomed.create_session("s", "cli")
    db = open_store()
    db.reopen_session("s")
    db.append_message("s", "user", "where were we")
    assert db.get_session("s")["ended_at"] is None
    assert open_store().get_session("s")["ended_at"] is None
