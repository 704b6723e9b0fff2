"""History search within one chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_conversation.history_scope import ScopedHistory
from hermes_state import SessionDB
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from pathlib import Path


def test_a_hit_of_the_chat_is_found_after_many_hits_of_other_chats() -> None:
    with SessionDB() as db:
        db.create_session("own", "telegram", session_key="chat:own")
        own_text = "needle in a long text " + "of hay " * 200
        db.append_message("own", "user", own_text)
        db.create_session("other", "telegram", session_key="chat:other")
        others = [{"role": "user", "content": "needle"}] * (250)
        db.append_messages_batch("other", others)
        first_page = db.search_messages("needle", limit=200)
        assert {hit["session_id"] for hit in first_page} == {"other"}
        hits = ScopedHistory(db, "chat:own").answer("needle").hits
        assert [hit.session_id for hit in hits] == ["own"]


def test_the_agent_finds_earlier_sessions_and_not_its_own_question(tmp_path: Path) -> None:
    with SessionDB() as db:
        db.create_session("earlier", "cli")
        db.append_message("earlier", "user", "the blue teapot is in the attic")
    search = tool_call_step("session_search", {"query": "teapot"})
    with open_conversation(tmp_path, search) as conversation:
        (found,) = conversation.results("where is the teapot?")
    assert re.findall(r"session (\S+) ", found["results"]) == ["earlier"]
