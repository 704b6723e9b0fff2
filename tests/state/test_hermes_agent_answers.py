"""Methods that answer as those of hermes-agent do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import TitleError
from hermes_state import SessionDB
from state.foreign_files import write_as_hermes_agent
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db") as store:
        yield store


def test_a_continued_conversation_gets_the_name_of_its_first_row(db: SessionDB) -> None:
    db.create_session("first", "cli")
    db.set_session_title("first", "Long talk")
    db.end_session("first", "compression")
    db.create_session("second", "cli", parent_session_id="first")
    db.set_session_title("second", "Long talk #2")
    db.create_session("other", "cli")
    assert db.set_session_title("second", "Long talk")
    assert db.get_session_title("second") == "Long talk"
    assert db.get_session_title("first") is None
    with pytest.raises(TitleError, match="taken by session second"):
        db.set_session_title("other", "Long talk")


def test_an_empty_session_with_a_title_or_children_is_kept(db: SessionDB) -> None:
    db.create_session("titled", "cli")
    db.set_session_title("titled", "A plan")
    db.create_session("parent", "cli")
    db.create_session("child", "cli", parent_session_id="parent")
    db.create_session("empty", "cli")
    results = {name: db.delete_session_if_empty(name) for name in ("titled", "parent", "empty")}
    assert results == {"titled": False, "parent": False, "empty": True}


def test_an_archived_empty_session_is_kept(db: SessionDB) -> None:
    for name in ("archived", "empty"):
        db.create_session(name, "cli")
        db.end_session(name, "cli_close")
    db.set_session_archived("archived", True)
    assert db.delete_empty_sessions() == 1
    assert db.get_session("archived") is not None


@pytest.mark.parametrize("value", ["x", "", "nan"])
def test_an_unreadable_time_of_house_keeping_means_that_it_is_due(
    db: SessionDB, value: str
) -> None:
    db.set_meta("last_auto_prune", value)
    assert db.is_house_keeping_due()
    assert not db.keep_house()["skipped"]
    assert not db.is_house_keeping_due()


def test_usage_of_a_side_task_does_not_change_the_model(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.update_token_counts("s", model="large", input_tokens=10)
    db.update_token_counts("s", model="small", input_tokens=1)
    row = db.get_session("s")
    assert row is not None
    assert (row["model"], row["input_tokens"]) == ("large", 11)


def test_a_lineage_that_another_program_completed_later_is_listed_right(
    hermes_home: Path,
) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("parent", "cli")
        db.append_message("parent", "user", "hello")
        db.create_session("child", "cli", parent_session_id="parent")
    end = "UPDATE sessions SET ended_at = 6, end_reason = 'compression' WHERE id = 'parent'"
    write_as_hermes_agent(path, [(end, ()), ("DELETE FROM state_meta", ())])
    with SessionDB(path) as db:
        wait_until(lambda: [row["id"] for row in db.list_sessions_rich()] == ["child"])
