"""A model is told once when a background job has ended: in the turn, or with the next prompt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.agent_conversation import open_conversation, tool_call_step
from support.rendered_history import assert_extends
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.tools.jobs import Jobs

COMMAND = "until test -e go; do sleep .02; done; exit 3"
ENDED = f"Background job1 (`{COMMAND}`) has ended with exit code 3"


def terminal(command: str, **more: Any) -> dict[str, Any]:
    return tool_call_step("terminal", {"command": command, **more})


START = terminal(COMMAND, background=True)


def test_in_the_turn_the_next_result_says_so(tmp_path: Path) -> None:
    steps = (START, terminal("touch go; sleep 1"), terminal("true"))
    with open_conversation(tmp_path, *steps, reply="once") as conversation:
        started, *others = conversation.results()
        sent = json.dumps(conversation.server.requests[-1]["messages"])
    assert "background" not in started
    told = [each["background"] for each in others if "background" in each]
    assert [text.startswith(ENDED) for text in told] == [True]
    assert sent.count("has ended with exit code 3") == 1


@pytest.mark.parametrize("is_read", [False, True])
def test_after_the_turn_the_next_prompt_says_so_unless_the_model_has_read_it(
    tmp_path: Path, is_read: bool
) -> None:
    steps = [START, {"say": "Started."}]
    if is_read:
        steps = [START, terminal("touch go"), tool_call_step("process", {"action": "wait",
                 "job": "job1"}), {"say": "Started."}]  # fmt: skip
    with open_conversation(tmp_path, *steps, reply="once") as conversation:
        conversation.results("start")
        (tmp_path / "go").touch()
        jobs: Jobs = conversation.bundle.jobs
        wait_until(lambda: not jobs.find("job1").is_running)
        conversation.results("and now?")
        prompt = conversation.server.requests[-1]["messages"][-1]["content"]
        conversation.results("once more")
        told, later = (request["messages"] for request in conversation.server.requests[-2:])
        rows = conversation.bundle.agent.conversation_store.history()
    assert (ENDED in prompt) is not is_read
    assert prompt.endswith("and now?")
    assert_extends(told, later)  # what was told stays
    assert all(ENDED not in str(row["content"]) for row in rows if row["role"] == "user")
