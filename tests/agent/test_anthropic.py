"""Anthropic's API, over a real connection to a scripted server that speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.events import TurnEnd
from hermes_agent.providers.anthropic import Anthropic, as_blocks, with_cache_points
from hermes_agent.tools.base import Tool, success

if TYPE_CHECKING:
    from agent.conftest import Scene


def echo() -> Tool:
    def run(arguments: dict[str, Any], _context: Any) -> str:
        return success(output=arguments["text"])

    return Tool("echo", "Says it again.", {"type": "object"}, run)


def test_a_turn_with_a_tool(scene: Scene) -> None:
    call = "{name: echo, arguments: {text: hi}}"
    steps = f"steps: [{{say: Look., think: hm, calls: [{call}]}}, {{say: Done.}}]"
    provider = Anthropic("claude", "key", scene.server(steps).base_url)
    agent = scene.with_providers([provider], echo())
    finished = list(agent.turn("go"))[-1]
    assert (finished.end, finished.text) == (TurnEnd.COMPLETE, "Done.")
    assert [role for role, _ in scene.messages(agent)] == ["user", "assistant", "tool", "assistant"]
    assert scene.rows(agent)[1]["reasoning"] == "hm"
    sent = scene.servers[0].requests[1]
    assert sent["system"][0]["text"] == "Be brief."
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    blocks = [block["type"] for message in sent["messages"] for block in message["content"]]
    assert blocks == ["text", "thinking", "text", "tool_use", "tool_result"]


def test_an_incomplete_answer_is_stored_and_reported(scene: Scene) -> None:
    server = scene.server(f"steps: [{', '.join(['{say: This much, cut: true}'] * 4)}]")
    agent = scene.with_providers([Anthropic("claude", "key", server.base_url)])
    finished = list(agent.turn("hi"))[-1]
    assert finished.end is TurnEnd.FAILED
    assert scene.messages(agent)[-1] == ("assistant", "This much")


def test_turns_alternate_and_the_beginning_can_be_cached() -> None:
    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    system, turns = as_blocks(messages)
    assert system == "S"
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["text"] for block in turns[0]["content"]] == ["a", "b"]
    assert all("cache_control" in turn["content"][-1] for turn in with_cache_points(turns))
