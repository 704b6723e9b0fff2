"""Conversations with several rows are treated as one: lists, pruning, search, identities."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from hermes_state.upkeep.health import examine
from state.conftest import FILES_ONLY
from state.foreign_files import foreign_message, write_as_hermes_agent

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import ManualClock

DAY = 86_400


def live(db: SessionDB, session_id: str) -> list[str]:
    return [m["content"] for m in db.get_messages(session_id)]


def listed(db: SessionDB) -> list[str]:
    return [row["id"] for row in db.list_sessions_rich()]


@pytest.fixture
def chain(db: SessionDB, clock: ManualClock) -> tuple[str, str]:
    """A conversation with two rows, as hermes-agent continues a long one."""
    db.create_session("first", "cli")
    db.append_message("first", "user", "beginning")
    db.end_session("first", "compression")
    clock.advance(200 * DAY)
    db.create_session("second", "cli", parent_session_id="first")
    db.append_message("second", "user", "ending")
    return "first", "second"


def test_messages_kept_by_a_compaction_stay_in_the_context(db: SessionDB, session: str) -> None:
    for number in range(6):
        db.append_message(session, "user", f"m{number}")
    repeated = db.get_messages_as_conversation(session)[-2:]
    summary = {"role": "user", "content": "summary"}
    assert db.archive_and_compact(session, [summary, *repeated]) == 3
    assert live(db, session) == ["summary", "m4", "m5"]
    assert db.statistics.stats().lifetime_messages == 6  # a summary is not counted


def test_a_trashed_message_does_not_hide_older_ones_from_a_scan(
    db: SessionDB, session: str
) -> None:
    db.append_message(session, "tool", "needle", tool_name="shell")
    filler = [{"role": "user", "content": "x"}] * 1500
    db.append_messages_batch(session, filler)
    db.create_session("z", "cli")
    db.append_message("z", "user", "x")
    db.delete_session("z")
    assert len(db.search_messages("needle", with_tools=True)) == 1
    assert len(db.search_messages("needle", with_tools=True, session_id=session)) == 1


@pytest.mark.engines
def test_a_conversation_of_two_rows_is_pruned_pinned_and_deleted_as_one(
    db: SessionDB, chain: tuple[str, str]
) -> None:
    assert db.retention.plan(90).due == []
    db.set_session_pinned("second")
    assert [db.get_session(row_id)["pinned"] for row_id in chain] == [1, 1]
    db.delete_session("second")
    assert {row.session_id for row in db.trash.content()} == set(chain)
    db.trash.restore("second")
    assert listed(db) == ["second"]
    assert len(db.search_messages("beginning", session_id="second")) == 1
    db.trash.purge("second")
    assert db.search_messages("beginning") == []
    assert db.get_session("first") is None


def test_a_purge_includes_delegates(db: SessionDB, session: str) -> None:
    db.create_session("d", "subagent", parent_session_id=session,
                      model_config={"_delegate_from": session})  # fmt: skip
    db.append_message("d", "user", "topsecret")
    db.search_messages("topsecret")
    db.trash.purge(session)
    assert db.search_messages("topsecret") == []


def test_a_delegate_trashed_earlier_stays_in_the_trash(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    db.create_session("d", "subagent", parent_session_id=session,
                      model_config={"_delegate_from": session})  # fmt: skip
    db.delete_session("d")
    clock.advance(10)
    db.delete_session(session)
    db.trash.restore(session)
    assert [row.session_id for row in db.trash.content()] == ["d"]


def test_a_child_created_before_its_parent_ended_is_listed(db: SessionDB) -> None:
    db.create_session("a", "cli")
    db.append_message("a", "user", "hi a")
    db.create_session("b", "cli", parent_session_id="a")
    db.append_message("b", "user", "hi b")
    db.end_session("a", "compression")
    assert listed(db) == ["b"]


@FILES_ONLY
def test_a_conversation_continued_by_another_program_is_listed_once(
    db: SessionDB, db_path: Path, session: str, clock: ManualClock
) -> None:
    db.append_message(session, "user", "hi")
    now = clock.now() + 1
    end = "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?"
    insert = "INSERT INTO sessions (id, source, started_at, parent_session_id) VALUES (?, ?, ?, ?)"
    write_as_hermes_agent(
        db_path,
        [
            (end, (now, session)),
            (insert, ("next", "cli", now, session)),
            foreign_message("next", "user", "on", now),
        ],
    )
    assert listed(db) == ["next"]
    findings = {finding.name: finding.status for finding in examine(db_path)}
    assert findings["session index"] == "ok"


def test_an_index_is_kept_if_the_history_lacks_its_sequence(hermes_home: Path) -> None:
    """A file that another program has copied row by row has no `sqlite_sequence` for messages."""
    with SessionDB() as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "where is the kumquat")
        assert db.search.fill()
    sequence = "DELETE FROM sqlite_sequence WHERE name = 'messages'"
    write_as_hermes_agent(hermes_home / "state.db", [(sequence, ())])
    (hermes_home / "link").hardlink_to(hermes_home / "search.db")
    with SessionDB(read_only=True) as db:
        assert len(db.search.answer("kumquat").hits) == 1
    assert (hermes_home / "search.db").samefile(hermes_home / "link")


def test_a_search_index_of_another_history_is_discarded(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        for number in range(10):
            db.append_message("s", "user", f"alpha{number}")
        assert len(db.search_messages("alpha0")) == 1
    path.unlink()
    with SessionDB(path) as db:
        db.create_session("t", "cli")
        db.append_message("t", "user", "beta new")
        assert len(db.search_messages("beta")) == 1
        assert db.search_messages("alpha0") == []


def test_a_search_index_newer_than_a_restored_copy_is_discarded(
    hermes_home: Path,
) -> None:
    path, copy = hermes_home / "state.db", hermes_home / "copy.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "common")
    shutil.copyfile(path, copy)
    with SessionDB(path) as db:
        for number in range(5):
            db.append_message("s", "user", f"lost{number}")
        db.search_messages("lost0")
    shutil.copyfile(copy, path)
    with SessionDB(path) as db:
        for number in range(9):
            db.append_message("s", "user", f"found{number}")
        assert len(db.search_messages("found0")) == 1
        assert db.search_messages("lost0") == []


def test_a_message_of_one_conversation_is_stored_once_in_another(
    db: SessionDB, session: str
) -> None:
    db.append_message(session, "user", "hi")
    db.create_session("b", "cli")
    conversation = db.get_messages_as_conversation(session)
    db.append_messages_batch("b", conversation)
    db.append_messages_batch("b", conversation)
    assert live(db, "b") == ["hi"]


def test_appending_to_a_trashed_conversation_restores_it(db: SessionDB, session: str) -> None:
    db.delete_session(session)
    db.append_message(session, "user", "still here")
    assert listed(db) == [session]
    assert db.trash.content() == []


@pytest.mark.parametrize("config", ["null", "[1]", "broken {"])
def test_an_invalid_configuration_prevents_neither_branching_nor_updates(
    db: SessionDB, config: str
) -> None:
    db.create_session("s", "cli", model_config=config)
    db.edits.branch("s", "t")
    db.update_session_meta("s", {"max_tokens": 1})


def test_titles_with_non_decimal_digits_are_not_numbered(db: SessionDB, session: str) -> None:
    db.set_session_title(session, "foo #²")
    assert db.get_next_title_in_lineage("foo") == "foo"


def test_the_context_of_a_match_is_from_its_own_conversation(db: SessionDB, session: str) -> None:
    db.create_session("other", "cli")
    for number in range(3):
        db.append_message(session, "user", f"mine{number}")
        db.append_message("other", "user", f"theirs{number}")
    (hit,) = db.search_messages("mine1")
    assert [m["content"] for m in hit["context"]] == ["mine0", "mine1", "mine2"]
