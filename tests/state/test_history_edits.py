"""Undo, redo, retry, branch and compaction change what is live, never what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SessionNotFoundError, TitleError, UsageError

if TYPE_CHECKING:
    from hermes_state import SessionDB


@pytest.fixture
def talk(db: SessionDB, session: str) -> str:
    for number in (1, 2, 3):
        db.append_message(session, "user", f"question {number}")
        db.append_message(session, "assistant", f"answer {number}")
    return session


def live(db: SessionDB, session_id: str) -> list[str]:
    return [m["content"] for m in db.get_messages(session_id)]


def everything(db: SessionDB, session_id: str) -> list[str]:
    return [m["content"] for m in db.get_messages(session_id, include_inactive=True)]


def test_undo_takes_back_exchanges_and_redo_brings_them_back(db: SessionDB, talk: str) -> None:
    before = live(db, talk)
    db.undo(talk)
    assert live(db, talk) == before[:4]
    db.undo(talk)
    assert live(db, talk) == before[:2]
    db.redo(talk)
    assert live(db, talk) == before[:4]
    db.redo(talk)
    assert live(db, talk) == before
    assert db.redo(talk) == []


def test_undo_of_many_is_one_step_for_redo(db: SessionDB, talk: str) -> None:
    before = live(db, talk)
    db.undo(talk, 2)
    assert live(db, talk) == before[:2]
    db.redo(talk)
    assert live(db, talk) == before


def test_once_the_talk_goes_on_there_is_nothing_to_redo(db: SessionDB, talk: str) -> None:
    db.undo(talk)
    db.append_message(talk, "user", "something else")
    assert db.redo(talk) == []
    assert "answer 3" in everything(db, talk)


def test_undone_words_are_hidden_from_search_unless_asked_for(db: SessionDB, talk: str) -> None:
    db.undo(talk)
    assert db.search_messages("answer 3") == []
    assert len(db.search_messages("answer 3", include_inactive=True)) == 1


def test_retry_gives_the_question_and_takes_the_answer(db: SessionDB, talk: str) -> None:
    question = db.retry(talk)
    assert question["content"] == "question 3"
    db.append_message(talk, "assistant", "better answer")
    assert live(db, talk)[-2:] == ["question 3", "better answer"]


def test_rewinding_names_what_it_did(db: SessionDB, talk: str) -> None:
    ids = [m["id"] for m in db.get_messages(talk)]
    result = db.rewind_to_message(talk, ids[2])
    assert result["rewound_count"] == 4
    assert result["target_message"]["content"] == "question 2"
    assert result["new_head_id"] == ids[1]
    assert db.get_session(talk)["rewind_count"] == 1
    assert db.restore_rewound(talk) == 4
    with pytest.raises(SessionNotFoundError):
        db.rewind_to_message(talk, 999_999)


def test_recent_questions_are_listed_newest_first(db: SessionDB, talk: str) -> None:
    previews = [row["preview"] for row in db.list_recent_user_messages(talk, 2)]
    assert previews == ["question 3", "question 2"]


def test_compaction_keeps_every_row_and_stays_searchable(db: SessionDB, talk: str) -> None:
    summary = [{"role": "user", "content": "summary so far"}]
    assert db.archive_and_compact(talk, summary) == 1
    assert live(db, talk) == ["summary so far"]
    assert len(everything(db, talk)) == 7
    assert len(db.search_messages("answer 2")) == 1
    assert [e["kind"] for e in db.list_boundaries(talk)] == ["compaction"]


def test_replacing_keeps_what_agrees(db: SessionDB, talk: str) -> None:
    ids = [m["id"] for m in db.get_messages(talk)]
    conversation = db.get_messages_as_conversation(talk)[:3]
    db.replace_messages(talk, [*conversation, {"role": "assistant", "content": "new"}])
    rows = db.get_messages(talk)
    assert [m["id"] for m in rows[:3]] == ids[:3]
    assert live(db, talk) == ["question 1", "answer 1", "question 2", "new"]
    assert len(everything(db, talk)) == 7


def test_a_branch_has_every_row_with_every_column(db: SessionDB, talk: str) -> None:
    db.append_message(
        talk, "assistant", "x", reasoning="r", reasoning_details=[1], platform_message_id="p",
        tool_calls=[{"id": "1"}],
    )  # fmt: skip
    db.undo(talk)
    branch = db.branch_session(talk, title="other way")
    ours = db.get_messages(talk, include_inactive=True)
    theirs = db.get_messages(branch, include_inactive=True)
    for mine, copy in zip(ours, theirs, strict=True):
        del mine["id"], mine["session_id"], copy["id"], copy["session_id"]
        assert mine == copy
    row = db.get_session(branch)
    assert (row["parent_session_id"], row["title"]) == (talk, "other way")
    assert {r["id"] for r in db.list_sessions_rich()} == {talk, branch}


def test_a_branch_can_begin_in_the_middle(db: SessionDB, talk: str) -> None:
    middle = db.get_messages(talk)[1]["id"]
    branch = db.branch_session(talk, through_message_id=middle, end_parent=True)
    assert live(db, branch) == ["question 1", "answer 1"]
    assert db.get_session(talk)["end_reason"] == "branched"


def test_a_branch_that_cannot_be_leaves_nothing_behind(db: SessionDB, talk: str) -> None:
    db.set_session_title(talk, "taken")
    with pytest.raises(TitleError):
        db.branch_session(talk, "new-id", title="taken")
    assert db.get_session("new-id") is None
    with pytest.raises(UsageError):
        db.branch_session(talk, talk)
    with pytest.raises(SessionNotFoundError):
        db.branch_session("nobody")


def test_lifetime_counts_ignore_copies_and_never_shrink(db: SessionDB, talk: str) -> None:
    assert db.stats()["lifetime_messages"] == 6
    branch = db.branch_session(talk)
    db.undo(talk, 3)
    db.delete_session(branch)
    db.purge_session(branch)
    assert db.stats()["lifetime_messages"] == 6
    db.purge_session(talk)
    assert db.stats()["lifetime_messages"] == 6
    assert db.get_session(talk) is None


def test_clearing_can_be_taken_back(db: SessionDB, talk: str) -> None:
    before = live(db, talk)
    db.clear_messages(talk)
    assert live(db, talk) == []
    db.redo(talk)
    assert live(db, talk) == before
