"""Trash: deleted sessions can be restored until they are purged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SessionNotFoundError

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB

pytestmark = pytest.mark.clock

DAY = 86_400


@pytest.fixture
def old_session(db: SessionDB, session: str, clock: ManualClock) -> str:
    db.append_message(session, "user", "long ago")
    db.set_session_title(session, "precious")
    db.end_session(session, "cli_close")
    clock.advance(100 * DAY)
    return session


def test_a_deleted_session_is_not_listed_and_is_restored_completely(
    db: SessionDB, old_session: str
) -> None:
    before = db.export_session(old_session)
    assert db.delete_session(old_session)
    assert db.list_sessions_rich(include_archived=True, include_children=True) == []
    assert [row["id"] for row in db.list_sessions_rich(trashed_only=True)] == [old_session]
    assert db.trash.content()[0].title == "precious"
    db.trash.restore(old_session)
    assert db.export_session(old_session) == before
    assert len(db.list_sessions_rich()) == 1


def test_a_restored_open_session_is_open_again(db: SessionDB, session: str) -> None:
    db.delete_session(session)
    assert db.get_session(session)["end_reason"] == "deleted"
    db.trash.restore(session)
    assert db.get_session(session)["ended_at"] is None


def test_a_title_in_use_gets_a_number_on_restore(db: SessionDB, old_session: str) -> None:
    db.delete_session(old_session)
    db.create_session("other", "cli")
    db.set_session_title("other", "precious")
    db.trash.restore(old_session)
    assert db.get_session_title(old_session) == "precious #2"


@pytest.mark.engines
def test_deleting_includes_delegates_and_keeps_branches(db: SessionDB, old_session: str) -> None:
    branch = db.edits.branch(old_session)
    db.create_session("d", "subagent", parent_session_id=old_session,
                      model_config={"_delegate_from": old_session})  # fmt: skip
    db.delete_session(old_session)
    assert {row.session_id for row in db.trash.content()} == {old_session, "d"}
    assert db.trash.purge_expired(0) == 2
    assert [row["id"] for row in db.list_sessions_rich()] == [branch]
    assert db.get_session(branch)["parent_session_id"] is None


def test_a_child_of_a_purged_parent_becomes_independent(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    db.append_message(session, "user", "first")
    clock.advance(1)
    db.create_session("child", "cli", parent_session_id=session)
    assert [row["id"] for row in db.list_sessions_rich()] == [session]
    db.trash.purge(session)
    assert [row["id"] for row in db.list_sessions_rich()] == ["child"]
    assert db.statistics.repair_index() == 0


def test_only_a_trashed_session_can_be_restored(db: SessionDB, session: str) -> None:
    with pytest.raises(SessionNotFoundError):
        db.trash.restore(session)
    assert db.delete_session("nobody") is False


def test_recently_trashed_sessions_are_not_purged(
    db: SessionDB, old_session: str, clock: ManualClock
) -> None:
    db.delete_session(old_session)
    clock.advance(29 * DAY)
    assert db.trash.purge_expired(30) == 0
    clock.advance(2 * DAY)
    assert db.trash.purge_expired(30) == 1
    assert db.message_count() == 0
    assert db.statistics.clean_up() == 1


def test_pruning_uses_the_last_activity(
    db: SessionDB, old_session: str, clock: ManualClock
) -> None:
    db.create_session("old but active", "cli", started_at=clock.now() - 500 * DAY)
    db.append_message("old but active", "user", "just now")
    db.end_session("old but active", "cli_close")
    assert db.prune_sessions(90) == 1
    assert [row.session_id for row in db.trash.content()] == [old_session]


@pytest.mark.engines
def test_pruning_keeps_pinned_and_running_sessions_with_a_reason(
    db: SessionDB, old_session: str, clock: ManualClock
) -> None:
    db.set_session_pinned(old_session)
    db.create_session("running", "cli")
    clock.advance(100 * DAY)
    plan = db.retention.plan(90)
    assert plan.due == []
    assert {row.session.id: reason for row, reason in plan.spared} == {
        old_session: "pinned",
        "running": "still open",
    }
    assert db.prune_sessions(90) == 0


def test_open_rows_without_an_owner_can_be_pruned(db: SessionDB, clock: ManualClock) -> None:
    db.create_session("left behind", "cli", is_owned=False)
    clock.advance(100 * DAY)
    assert db.prune_sessions(90) == 1


def test_empty_sessions_can_be_deleted(db: SessionDB, old_session: str) -> None:
    db.create_session("empty", "cli")
    assert db.count_empty_sessions() == 0
    db.end_session("empty", "tui_close")
    assert db.count_empty_sessions() == 1
    assert db.delete_session_if_empty(old_session) is False
    assert db.delete_empty_sessions() == 1
    assert [row["id"] for row in db.list_sessions_rich()] == [old_session]
