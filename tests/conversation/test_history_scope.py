"""History search within one chat."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hermes_agent.messages import ToolCall
from hermes_conversation.agent_factory import ConversationOptions, searchable_history
from hermes_conversation.history_scope import ScopedHistory
from hermes_conversation.known_fixes import hints_for
from hermes_core.roles import Role
from hermes_state import SessionDB
from support.agent_conversation import open_conversation, tool_call_step

ERROR = "npm error code ERESOLVE: could not resolve the tree"


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


def failed_and_fixed(db: SessionDB, session_id: str, session_key: str) -> None:
    db.create_session(session_id, "telegram", session_key=session_key, cwd="/home/ada")
    for number, (command, code) in enumerate([("npm ci", 1), ("npm ci --force", 0)]):
        function = {"name": "terminal", "arguments": json.dumps({"command": command})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        result = json.dumps({"output": ERROR if code else "", "exit_code": code, "error": None})
        db.append_message(session_id, "assistant", "", tool_calls=[call])
        db.append_message(session_id, "tool", result, tool_call_id=f"c{number}")
    db.calls.fill()


def hint(db: SessionDB, options: ConversationOptions) -> str:
    hints = hints_for(db, searchable_history(db, options), options.role, is_on=True)
    call = ToolCall("c", "terminal", json.dumps({"command": "npm ci"}))
    result = json.dumps({"output": ERROR, "exit_code": 1, "error": None})
    return hints.about("now", Path("/home/ada"), call, result)


def test_hints_come_from_what_the_person_may_read() -> None:
    with SessionDB() as db:
        failed_and_fixed(db, "family", "telegram:family")
        assert "--force" in hint(db, ConversationOptions())
        own = ConversationOptions(role=Role.MEMBER, person="eve", scope_key="telegram:family")
        assert "--force" in hint(db, own)
        for role in (Role.OWNER, Role.MEMBER, Role.GUEST):  # the owner, in a chat that others read
            other = ConversationOptions(role=role, person="eve", scope_key="telegram:work")
            assert hint(db, other) == ""
        assert hint(db, ConversationOptions(role=Role.GUEST)) == ""
        db.trash.delete_session("family")
        assert hint(db, ConversationOptions()) == ""
