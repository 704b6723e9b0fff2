"""Sub-agents: separate conversations, announced to plugins and marked in the history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.events import ToolFinished
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.tools.delegate import TaskDelegation

if TYPE_CHECKING:
    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent


def parent(scene: Scene, calls: str, children: str) -> AIAgent:
    own_tools = OpenAICompatible("m", scene.server(f"steps: [{calls}, {{say: Done.}}]").base_url)
    child_tools = scene.server(f"steps: {children}")

    def child(parent_id: str) -> AIAgent:
        return scene.with_providers(
            [OpenAICompatible("m", child_tools.base_url)],
            source="subagent",
            parent_session_id=parent_id,
            model_config={"_delegate_from": parent_id},
        )

    delegating = TaskDelegation(child, scene.db.end_session, scene.announce)
    return scene.with_providers([own_tools], delegating.tool())


def results(agent: AIAgent) -> Any:
    matches = [event for event in agent.turn("go") if isinstance(event, ToolFinished)]
    return json.loads(matches[0].result)


TWO = "{calls: [{name: delegate_task, arguments: {tasks: [{goal: one}, {goal: two}]}}]}"


def test_tasks_are_done_in_conversations_of_their_own(scene: Scene) -> None:
    agent = parent(scene, TWO, "[{say: Report A}, {say: Report B}]")
    result = results(agent)["results"]
    assert {item["report"] for item in result} == {"Report A", "Report B"}
    assert {item["status"] for item in result} == {"completed"}
    for item in result:
        row = scene.db.get_session(item["session_id"])
        assert row is not None
        assert row["parent_session_id"] == agent.session_id
        assert row["end_reason"] == "agent_close"
        assert [m["content"] for m in scene.db.get_messages(item["session_id"])] == [
            item["goal"],
            item["report"],
        ]
    listed = [row["id"] for row in scene.db.list_sessions_rich(limit=-1)]
    assert listed == [agent.session_id]


def test_plugins_receive_the_start_and_end_of_conversations(scene: Scene) -> None:
    agent = parent(scene, TWO, "[{say: A}, {say: B}]")
    results(agent)
    started = [fields for name, fields in scene.hook_calls if name == "subagent_start"]
    stopped = [fields for name, fields in scene.hook_calls if name == "subagent_stop"]
    assert {item["child_goal"] for item in started} == {"one", "two"}
    assert {item["child_session_id"] for item in started} == {
        item["child_session_id"] for item in stopped
    }
    assert all(item["child_status"] == "complete" for item in stopped)


def test_a_sub_agent_that_fails_is_a_result_like_any_other(scene: Scene) -> None:
    text = "{calls: [{name: delegate_task, arguments: {goal: one}}]}"
    result = results(parent(scene, text, "[{fail: {status: 401}}]"))["results"][0]
    assert result["status"] == "failed"
    assert "Authentication failed" in result["error"]


@pytest.mark.parametrize(
    "arguments",
    ["{}", "{tasks: []}", "{tasks: [{}]}", "{tasks: [{goal: a}, {goal: b}, {goal: c}, {goal: d}]}"],
)
def test_invalid_tasks_are_rejected_with_a_message(scene: Scene, arguments: str) -> None:
    call = f"{{calls: [{{name: delegate_task, arguments: {arguments}}}]}}"
    assert results(parent(scene, call, "[{say: A}]"))["error"]
