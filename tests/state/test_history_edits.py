"""Undo, redo, retry, branch and compaction change the context, never the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SessionNotFoundError, TitleError, UsageError

if TYPE_CHECKING:
    from hermes_state import SessionDB


@pytest.fixture
def conversation(db: SessionDB, session: str) -> str:
    for number in (1, 2, 3):
        db.append_message(session, "user", f"question {number}")
        db.append_message(session, "assistant", f"answer {number}")
    return session


def live(db: SessionDB, session_id: str) -> list[str]:
    return [m["content"] for m in db.get_messages(session_id)]


def all_rows(db: SessionDB, session_id: str) -> list[str]:
    return [m["content"] for m in db.get_messages(session_id, include_inactive=True)]


@pytest.mark.engines
def test_undo_removes_exchanges_and_redo_restores_them(db: SessionDB, conversation: str) -> None:
    before = live(db, conversation)
    db.edits.undo(conversation)
    assert live(db, conversation) == before[:4]
    db.edits.undo(conversation)
    assert live(db, conversation) == before[:2]
    db.edits.redo(conversation)
    assert live(db, conversation) == before[:4]
    db.edits.redo(conversation)
    assert live(db, conversation) == before
    assert db.edits.redo(conversation) == []


def test_undo_of_many_is_one_step_for_redo(db: SessionDB, conversation: str) -> None:
    before = live(db, conversation)
    db.edits.undo(conversation, 2)
    assert live(db, conversation) == before[:2]
    db.edits.redo(conversation)
    assert live(db, conversation) == before


def test_redo_is_not_possible_after_a_new_message(db: SessionDB, conversation: str) -> None:
    db.edits.undo(conversation)
    db.append_message(conversation, "user", "something else")
    assert db.edits.redo(conversation) == []
    assert "answer 3" in all_rows(db, conversation)


def test_undone_messages_are_found_only_on_request(db: SessionDB, conversation: str) -> None:
    db.edits.undo(conversation)
    assert db.search_messages("answer 3") == []
    assert len(db.search_messages("answer 3", include_inactive=True)) == 1


def test_retry_returns_the_prompt_and_undoes_the_answer(db: SessionDB, conversation: str) -> None:
    question = db.edits.retry(conversation)
    assert question.content == "question 3"
    db.append_message(conversation, "assistant", "better answer")
    assert live(db, conversation)[-2:] == ["question 3", "better answer"]


def test_rewinding_returns_the_affected_rows(db: SessionDB, conversation: str) -> None:
    ids = [m["id"] for m in db.get_messages(conversation)]
    result = db.rewind_to_message(conversation, ids[2])
    assert result["rewound_count"] == 4
    assert result["target_message"]["content"] == "question 2"
    assert result["new_head_id"] == ids[1]
    assert db.get_session(conversation)["rewind_count"] == 1
    assert db.restore_rewound(conversation) == 4
    with pytest.raises(SessionNotFoundError):
        db.rewind_to_message(conversation, 999_999)


def test_recent_user_messages_are_listed_newest_first(db: SessionDB, conversation: str) -> None:
    previews = [row["preview"] for row in db.list_recent_user_messages(conversation, 2)]
    assert previews == ["question 3", "question 2"]


@pytest.mark.engines
def test_compacted_rows_are_kept_and_searchable(db: SessionDB, conversation: str) -> None:
    summary = [{"role": "user", "content": "summary so far"}]
    assert db.archive_and_compact(conversation, summary) == 1
    assert live(db, conversation) == ["summary so far"]
    assert len(all_rows(db, conversation)) == 7
    assert len(db.search_messages("answer 2")) == 1
    assert [e.kind for e in db.boundaries.recent(conversation)] == ["compaction"]


def test_replacing_keeps_the_common_beginning(db: SessionDB, conversation: str) -> None:
    ids = [m["id"] for m in db.get_messages(conversation)]
    messages = db.get_messages_as_conversation(conversation)[:3]
    db.replace_messages(conversation, [*messages, {"role": "assistant", "content": "new"}])
    rows = db.get_messages(conversation)
    assert [m["id"] for m in rows[:3]] == ids[:3]
    assert live(db, conversation) == ["question 1", "answer 1", "question 2", "new"]
    assert len(all_rows(db, conversation)) == 7


@pytest.mark.engines
def test_a_branch_has_every_row_with_every_column(db: SessionDB, conversation: str) -> None:
    db.append_message(
        conversation, "assistant", "x", reasoning="r", reasoning_details=[1],
        platform_message_id="p", tool_calls=[{"id": "1"}],
    )  # fmt: skip
    db.edits.undo(conversation)
    branch = db.edits.branch(conversation, title="other way")
    ours = db.get_messages(conversation, include_inactive=True)
    theirs = db.get_messages(branch, include_inactive=True)
    for original, copy in zip(ours, theirs, strict=True):
        del original["id"], original["session_id"], copy["id"], copy["session_id"]
        assert original == copy
    row = db.get_session(branch)
    assert (row["parent_session_id"], row["title"]) == (conversation, "other way")
    assert {r["id"] for r in db.list_sessions_rich()} == {conversation, branch}


def test_a_branch_can_start_at_any_message(db: SessionDB, conversation: str) -> None:
    middle = db.get_messages(conversation)[1]["id"]
    branch = db.edits.branch(
        conversation, through_message_id=middle, is_switched=True, end_parent=True
    )
    assert live(db, branch) == ["question 1", "answer 1"]
    assert db.get_session(conversation)["end_reason"] == "branched"


def test_a_failed_branch_creates_no_rows(db: SessionDB, conversation: str) -> None:
    db.set_session_title(conversation, "taken")
    with pytest.raises(TitleError):
        db.edits.branch(conversation, "new-id", title="taken")
    assert db.get_session("new-id") is None
    with pytest.raises(UsageError):
        db.edits.branch(conversation, conversation)
    with pytest.raises(SessionNotFoundError):
        db.edits.branch("nobody")


def test_lifetime_counts_ignore_copies_and_never_decrease(db: SessionDB, conversation: str) -> None:
    assert db.statistics.stats().lifetime_messages == 6
    branch = db.edits.branch(conversation)
    db.edits.undo(conversation, 3)
    db.delete_session(branch)
    db.trash.purge(branch)
    assert db.statistics.stats().lifetime_messages == 6
    db.trash.purge(conversation)
    assert db.statistics.stats().lifetime_messages == 6
    assert db.get_session(conversation) is None


def test_clearing_can_be_undone(db: SessionDB, conversation: str) -> None:
    before = live(db, conversation)
    db.clear_messages(conversation)
    assert live(db, conversation) == []
    db.edits.redo(conversation)
    assert live(db, conversation) == before
