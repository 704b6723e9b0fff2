"""The todo list: kept by the model, stored in the history, shown to the user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_agent.tools.todo import current_items, format_items
from hermes_conversation import slash_commands
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_conversation.slash_commands import Surface
from hermes_conversation.tool_results import report_of
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    from agent.tools.conftest import Bench


def test_a_list_is_counted_and_read_back_from_the_last_valid_call(bench: Bench) -> None:
    items = [{"text": " sow \n peas ", "status": "done"}, {"text": "water"}, "weed"]
    result = bench("todo", items=items)
    assert result == {"todo": "☑ sow peas\n☐ water\n☐ weed", "error": None}
    calls = [json.dumps({"items": items}), '{"items": [{"status": "done"}]}', "not JSON"]
    messages = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "todo", "arguments": text}}]}
        for text in calls
    ]
    assert format_items(current_items(messages)) == "☑ sow peas\n☐ water\n☐ weed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "items",
    [None, "peas", [{"text": ""}], [{"text": "a", "status": "later"}], [3], [{"text": "x"}] * 51],
)
def test_what_is_not_a_list_of_steps_is_refused(bench: Bench, items: object) -> None:
    assert bench("todo", items=items)["error"]


def test_the_user_sees_the_list_also_after_a_restart(tmp_path: Path) -> None:
    call = "{calls: [{name: todo, arguments: {items: [{text: sow, status: active}]}}]}"
    script = ModelScript.parse(f"steps: [{call}, {{say: I sow.}}]")
    with ScriptServer(script) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=tmp_path)
        talk = Conversation(db, NonInteractivePrompter(), options)
        assert slash_commands.run(talk, "/todo", Surface.TERMINAL).text == "The todo list is empty."
        list(talk.send("make a garden"))
        again = Conversation(
            db, NonInteractivePrompter(), options._replace(session_id=talk.session_id)
        )
        assert slash_commands.run(again, "/todo", Surface.TERMINAL).text == "▶ sow"
        results = [str(row.content) for row in db.messages.rows(talk.session_id)]
        assert report_of(results[2]).lines == ("▶ sow",)
        talk.stop()
        again.stop()
