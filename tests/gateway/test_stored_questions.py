"""Questions of running turns that another process answers, through the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.api_setup import ApiSetup, completion_text, session_headers
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

GUARDED = "[{calls: [{name: terminal, arguments: {command: rm -rf x}}]}, {say: Done.}]"


async def test_a_question_can_be_answered_from_another_process(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering(GUARDED)
    async with ApiSetup(db, tmp_path).open() as client:
        asked = await client.ask("clean up", headers=session_headers("s"))
        (question,) = db.open_questions.all()
        assert question.kind == "approval"
        assert "rm -rf x" in question.text
        assert "/deny" in question.choices
        assert db.open_questions.answer(question.question_id, "deny not today")
        await async_wait_until(lambda: len(server.requests) == 2)
        await async_wait_until(lambda: not client.service.conversations.all_running())
        later = await client.ask("thanks", headers=session_headers("s"))
    assert "rm -rf x" in completion_text(asked)
    assert completion_text(later) == "You said: thanks"
    assert "not today" in str(server.requests[1]["messages"][-1]["content"])
    assert db.open_questions.all() == []


async def test_an_answer_in_the_chat_closes_the_question(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(GUARDED)
    async with ApiSetup(db, tmp_path).open() as client:
        await client.ask("clean up", headers=session_headers("s"))
        (question,) = await asyncio.to_thread(db.open_questions.all)
        assert completion_text(await client.ask("/deny", headers=session_headers("s"))) == "Done."
        await async_wait_until(lambda: db.open_questions.all() == [])
    assert not db.open_questions.answer(question.question_id, "once")


@pytest.mark.engines
def test_a_question_expires(db: SessionDB) -> None:
    db.open_questions.add("q1", "key", "s", "clarify", "Which?", ["1", "2"], -1)
    assert db.open_questions.all() == []
    assert not db.open_questions.answer("q1", "1")
    db.open_questions.add("q2", "key", "s", "clarify", "Which?", ["1", "2"], 60)
    (question,) = db.open_questions.all()
    assert (question.question_id, question.choices) == ("q2", ("1", "2"))
