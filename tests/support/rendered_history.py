"""What a user saw of a conversation, in the form in which it is sent to a provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_agent.context.plain_results import with_plain_result
from hermes_agent.context.system_prompt import INTERRUPTED, note_of
from hermes_agent.events import MessageStored, Retrying, TextDelta, ToolFinished, ToolStarted
from hermes_agent.providers.openai_compatible import OpenAICompatible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent
    from hermes_agent.events import Event
    from hermes_agent.tools.base import Tool

Messages = list[dict[str, Any]]


def user_message(text: Any) -> dict[str, Any]:
    """A user message in the wire format."""
    return {"role": "user", "content": text}


def after_interruption(text: str) -> dict[str, Any]:
    """A user message after a partial answer in the wire format."""
    return user_message(f"{note_of([INTERRUPTED], {})['note']}\n\n{text}")


def rendered_turn(text: Any, events: Iterable[Event]) -> Messages:
    """The messages of one turn: the prompt, and what its events rendered."""
    messages: Messages = [user_message(text)]
    streamed = ""
    for event in events:
        if isinstance(event, TextDelta):
            streamed += event.text
        elif isinstance(event, Retrying) and event.drops_text:
            streamed = ""
        elif isinstance(event, MessageStored) and event.role == "assistant":
            messages.append({"role": "assistant", "content": streamed})
            streamed = ""
        elif isinstance(event, ToolStarted):
            answer = next(
                message for message in reversed(messages) if message["role"] == "assistant"
            )
            answer.setdefault("tool_calls", []).append(event.call.stored())
        elif isinstance(event, ToolFinished):
            content = with_plain_result({"role": "tool", "content": event.result})["content"]
            result = {"role": "tool", "content": content, "tool_call_id": event.call.id}
            messages.append(result)
    return messages


def serialised(messages: Messages) -> list[str]:
    """Each message as JSON; the order of its fields is significant."""
    return [json.dumps(message) for message in messages]


def assert_extends(earlier: Messages, later: Messages) -> None:
    """Assert that the earlier request is a byte-exact prefix of the later one."""
    assert len(later) > len(earlier)
    assert serialised(later)[: len(earlier)] == serialised(earlier)


def reopen_agent(scene: Scene, agent: AIAgent, *tools: Tool, **options: Any) -> AIAgent:
    """Continue the conversation with a new agent on the same server."""
    provider = OpenAICompatible("scripted", scene.servers[0].base_url, **options)
    return scene.with_providers([provider], *tools, session_id=agent.session_id)


def sent_messages(scene: Scene) -> list[Messages]:
    """The messages of every request to the first server of a scene."""
    return [request["messages"] for request in scene.servers[0].requests]
