"""SessionDB: unread marks, exports, rows of other programs, side usage, the async facade."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import pytest

from hermes_state import AsyncSessionDB, SessionDB
from hermes_state.sessions.lists import refresh_index
from state.conftest import FILES_ONLY
from state.foreign_files import foreign_message, foreign_session, write_as_hermes_agent

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import ManualClock


@pytest.mark.engines
def test_messages_after_the_last_read_are_unread(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    assert not db.list_sessions_rich()[0]["unread"]
    db.mark_session_read(session)
    clock.advance(1)
    db.append_message(session, "assistant", "news")
    assert db.list_sessions_rich()[0]["unread"]


def test_an_export_has_every_row_of_the_conversation(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    db.append_message(session, "user", "one")
    db.edits.undo(session)
    db.end_session(session, "compression")
    clock.advance(1)
    db.create_session("next", "cli", parent_session_id=session)
    db.append_message("next", "user", "two")
    lineage = db.export_session_lineage(session)
    assert [part["id"] for part in lineage] == [session, "next"]
    assert [m["content"] for part in lineage for m in part["messages"]] == ["one", "two"]
    assert db.export_session("nobody") is None
    assert {part["id"] for part in db.export_all()} == {session, "next"}
    assert db.export_session(session, include_inactive=False)["messages"] == []


@FILES_ONLY
def test_empty_sessions_of_other_programs_are_moved_to_the_trash(
    db: SessionDB, db_path: Path, clock: ManualClock
) -> None:
    write_as_hermes_agent(
        db_path,
        [
            foreign_session("ghost", clock.now() - 2 * 86_400),
            foreign_session("young", clock.now()),
            foreign_session("spoken", clock.now() - 2 * 86_400),
            foreign_message("spoken", "user", "hello", clock.now()),
        ],
    )
    refresh_index(db.engine)
    assert db.prune_empty_ghost_sessions() == 1
    assert [row.session_id for row in db.trash.content()] == ["ghost"]


@FILES_ONLY
def test_rows_continued_elsewhere_by_another_program_are_ended(
    db: SessionDB, db_path: Path, clock: ManualClock
) -> None:
    now = clock.now()
    write_as_hermes_agent(
        db_path,
        [
            foreign_session("parent", now - 100),
            foreign_message("parent", "user", "hello", now - 90),
            foreign_session("child", now - 80, parent_session_id="parent"),
        ],
    )
    refresh_index(db.engine)
    assert db.finalize_orphaned_compression_sessions() == 1
    row = db.get_session("parent")
    assert (row["end_reason"], row["ended_at"]) == ("orphaned_compression", now - 90)


def test_usage_of_side_tasks_is_added(db: SessionDB, session: str) -> None:
    db.record_auxiliary_usage(session, "title", input_tokens=3, model="small")
    assert db.get_session(session)["input_tokens"] == 3


async def test_the_store_can_be_awaited(hermes_home: Path) -> None:
    db = AsyncSessionDB(hermes_home / "async.db")
    await db.create_session("s", "cli")
    await asyncio.gather(*[db.append_message("s", "user", str(n)) for n in range(20)])
    assert len(await db.get_messages("s")) == 20
    with pytest.raises(AttributeError):
        _ = db.iter_messages
    await db.close()


def test_the_names_of_hermes_agent_have_the_signatures_of_the_repositories() -> None:
    assert "session_id" in inspect.signature(SessionDB.append_message).parameters
