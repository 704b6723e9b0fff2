"""Boundary events of the store: one for each change, and none missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import LeaseLostError, SessionNotFoundError
from hermes_state.delivery.routes import Route
from hermes_state.messages import journal
from support.identities import act_as_dead_process

if TYPE_CHECKING:
    from hermes_state import SessionDB

pytestmark = pytest.mark.engines

CHAT = {"session_key": "key"}


def events_of(db: SessionDB, session_id: str | None = None) -> list[tuple[str, str, bool, bool]]:
    """Kind, session, whether it is final and whether it is a reset; oldest first."""
    return [
        (event.kind, event.session_id, bool(event.is_final), event.is_reset)
        for event in reversed(db.boundaries.recent(session_id))
    ]


def route_to(session_id: str, place: str = "place") -> Route:
    return Route(place, f"key of {place}", session_id, 1.0, {})


@pytest.fixture
def db(open_store) -> SessionDB:
    """A store with a chat that has the conversation `s`."""
    store: SessionDB = open_store()
    store.routes.begin(route_to("s"), "telegram", CHAT)
    store.append_message("s", "user", "hello")
    return store


def test_a_node_that_was_slow_gives_a_place_no_second_conversation(open_store) -> None:
    fast, slow = open_store(), open_store()
    assert fast.routes.begin(route_to("first"), "telegram", CHAT, only_if_free=True)
    assert not slow.routes.begin(route_to("second"), "telegram", CHAT, only_if_free=True)
    found = slow.routes.get(route_to("first").place)
    assert found is not None
    assert found.session_id == "first"
    assert slow.sessions.find("second") is None


def test_a_turn_that_died_is_announced_by_the_next_process(db: SessionDB, open_store) -> None:
    dead = open_store()
    act_as_dead_process(dead, "doomed")
    dead.routes.begin(route_to("idle", "other"), "telegram", CHAT)
    dead.leases.acquire("s")
    open_store()
    assert events_of(db) == [("crash", "s", True, False)]
    assert (db.get_session("idle") or {})["ended_at"] is None


def test_a_turn_that_died_is_announced_when_its_lease_is_taken_over(
    db: SessionDB, open_store
) -> None:
    dead = open_store()
    act_as_dead_process(dead, "doomed")
    dead.leases.acquire("s")
    db.leases.acquire("s")
    assert events_of(db) == [("crash", "s", True, False), ("resume", "s", False, False)]
    open_store()  # the process is released: its turn is not announced again
    assert len(events_of(db)) == 2


def test_the_conversation_of_a_chat_has_no_owner_after_it_was_reopened(
    db: SessionDB, open_store
) -> None:
    db.end_session("s", "shutdown")
    dead = open_store()
    act_as_dead_process(dead, "doomed")
    dead.reopen_session("s")
    open_store()
    assert events_of(db) == [("shutdown", "s", True, False), ("resume", "s", False, False)]


def test_a_message_of_an_ended_session_is_stored_with_a_resume_event(db: SessionDB) -> None:
    db.end_session("s", "shutdown")
    db.append_message("s", "user", "again")
    row = db.get_session("s") or {}
    assert (row["ended_at"], row["end_reason"], row["message_count"]) == (None, None, 2)
    assert events_of(db) == [("shutdown", "s", True, False), ("resume", "s", False, False)]
    db.end_session("s", "shutdown")
    assert [event.epoch for event in db.boundaries.recent() if event.is_final] == [1, 0]


def test_a_journaled_message_is_older_than_the_end(db: SessionDB) -> None:
    db.end_session("s", "cli_close")
    ended_at = (db.get_session("s") or {})["ended_at"]
    line: journal.JournalLine = {
        "session_id": "s",
        "uid": None,
        "values": {"role": "user", "content": "late", "timestamp": 1.0},
        "tool_calls": 0,
        "words": "late",
    }
    db.engine.write(lambda tx: journal.store_lines(tx, [line]))
    row = db.get_session("s") or {}
    assert (row["ended_at"], row["end_reason"]) == (ended_at, "cli_close")
    assert [kind for kind, *_ in events_of(db)] == ["shutdown", "resume", "shutdown"]


def test_a_place_that_moves_is_reset_once(db: SessionDB) -> None:
    db.routes.move(route_to("t"), "s", "session_reset", "telegram", CHAT)
    assert events_of(db) == [("new", "s", True, True)]
    db.routes.move(route_to("s"), "t", "session_switch", "telegram", CHAT)
    assert events_of(db)[1:] == [("resume", "t", True, True), ("resume", "s", False, False)]


@pytest.mark.parametrize("reason", ["idle", "daily", "suspended", "session_switch"])
def test_a_place_whose_conversation_had_ended_is_reset_once(db: SessionDB, reason: str) -> None:
    db.end_session("s", "idle_timeout")
    db.routes.move(route_to("t"), "s", reason, "telegram", CHAT)
    ((_, session_id, is_final, is_reset),) = events_of(db)[1:]
    assert (session_id, is_final, is_reset) == ("t", False, True)


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_terminal_that_moves_is_reset_once(db: SessionDB, is_ended: bool) -> None:
    db.create_session("cli", "cli")
    if is_ended:
        db.end_session("cli", "cli_close")
    before = len(events_of(db))
    db.sessions.switch("cli", "t", "new_session")
    assert events_of(db)[before:] == [("new", "cli", not is_ended, True)]
    db.sessions.switch("t", "u", "new_session")
    assert len(events_of(db)) == before + 1  # neither has a row


def test_a_branch_without_a_switch_is_one_event_and_no_reset(db: SessionDB) -> None:
    db.edits.branch("s", "copy")
    assert events_of(db) == [("branch", "copy", False, False)]


def test_a_branch_of_an_ended_conversation_is_one_event(db: SessionDB) -> None:
    db.end_session("s", "shutdown")
    db.edits.branch("s", "copy", is_switched=True, end_parent=True)
    assert events_of(db)[1:] == [("branch", "copy", False, True)]


@pytest.mark.parametrize("is_purged", [True, False])
def test_deleting_a_conversation_cuts_its_route(db: SessionDB, is_purged: bool) -> None:
    if is_purged:
        db.trash.purge("s")
    else:
        db.delete_session("s")
    assert db.routes.all() == []
    db.routes.put(route_to("s"))  # of a gateway that does not know it yet
    assert not db.routes.reopen(route_to("s"), "telegram", CHAT)
    assert db.routes.all() == []
    assert events_of(db) == [("prune", "s", True, False)]


def test_a_route_that_an_older_release_left_does_not_restore_a_deleted_conversation(
    db: SessionDB,
) -> None:
    db.delete_session("s")
    db.routes.add(route_to("s"))
    assert not db.routes.reopen(route_to("s"), "telegram", CHAT)
    assert (db.routes.all(), [item.session_id for item in db.trash.content()]) == ([], ["s"])


def test_a_deleted_conversation_is_not_routed_to(db: SessionDB) -> None:
    db.create_session("other", "telegram", is_owned=False)
    db.delete_session("s")
    for change in (
        lambda: db.routes.move(route_to("s"), "other", "session_switch", "telegram", CHAT),
        lambda: db.routes.adopt(route_to("s"), CHAT),
    ):
        with pytest.raises(SessionNotFoundError, match="was deleted"):
            change()


def test_the_turn_of_a_deleted_conversation_cannot_write(db: SessionDB, open_store) -> None:
    dead = open_store()
    act_as_dead_process(dead, "doomed")
    lease = dead.leases.acquire("s")
    db.delete_session("s")
    with pytest.raises(LeaseLostError, match="was deleted"):
        dead.append_message("s", "assistant", "late", lease=lease)
    draft = dead.messages.draft("s", lease=lease)
    draft.write("late")
    draft.flush()
    open_store()  # recovers the drafts of the dead process
    assert [item.session_id for item in db.trash.content()] == ["s"]
    assert db.message_count("s") == 1


def test_a_conversation_that_is_handed_over_belongs_to_its_new_chat(db: SessionDB) -> None:
    db.create_session("cli", "cli", is_owned=False)
    fields = {"session_key": "home", "chat_id": "7", "chat_type": "dm", "thread_id": None}
    db.routes.adopt(route_to("cli", "home"), fields)
    row = db.get_session("cli") or {}
    assert (row["session_key"], row["chat_id"], row["source"]) == ("home", "7", "cli")
    assert events_of(db) == [("handoff", "cli", False, True)]


def test_a_deletion_on_a_platform_names_messages_of_its_chat(db: SessionDB) -> None:
    fields = {"platform": "discord", "account": "me", "session_key": "k"}
    sources = {"7": {"thread_id": None}, "8": {"thread_id": "9"}}
    for chat, source in sources.items():
        for message_id in ("m1", "m1#edit", "m10"):
            payload = {"text": "", "source": source}
            db.inbox.receive(chat_id=chat, message_id=message_id, payload=payload, **fields)
    for chat, expected in (("7", "7"), ("9", "8")):
        rows = db.inbox.sent_as("discord", "me", chat, "m1")
        assert [(row.chat_id, row.message_id) for row in rows] == [
            (expected, "m1"),
            (expected, "m1#edit"),
        ]
    assert db.inbox.sent_as("discord", "me", "1", "m1") == []
