"""What a person was shown of a conversation, in the form in which a provider is sent it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_agent.events import MessageStored, TextDelta, ToolFinished, ToolStarted
from hermes_agent.providers.openai_compatible import OpenAICompatible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent
    from hermes_agent.events import Event

Sent = list[dict[str, Any]]


def said(text: Any) -> dict[str, Any]:
    """Something the user said."""
    return {"role": "user", "content": text}


def shown(text: Any, events: Iterable[Event]) -> Sent:
    """One turn: what was said, and what its events showed, to the end."""
    seen: Sent = [said(text)]
    words = ""
    for event in events:
        if isinstance(event, TextDelta):
            words += event.text
        elif isinstance(event, MessageStored) and event.role == "assistant":
            seen.append({"role": "assistant", "content": words})
            words = ""
        elif isinstance(event, ToolStarted):
            answer = next(item for item in reversed(seen) if item["role"] == "assistant")
            answer.setdefault("tool_calls", []).append(event.call.stored())
        elif isinstance(event, ToolFinished):
            result = {"role": "tool", "content": event.result, "tool_call_id": event.call.id}
            seen.append(result)
    return seen


def serialised(messages: Sent) -> list[str]:
    """Each message as it travels; the order of its fields counts too."""
    return [json.dumps(message) for message in messages]


def assert_goes_on(earlier: Sent, later: Sent) -> None:
    """The earlier request begins the later one, byte for byte: what a prompt cache needs."""
    assert len(later) > len(earlier)
    assert serialised(later)[: len(earlier)] == serialised(earlier)


def again(scene: Scene, agent: AIAgent, **options: Any) -> AIAgent:
    """The same conversation with another agent, which asks the same server."""
    provider = OpenAICompatible("scripted", scene.servers[0].base_url, **options)
    return scene.with_providers([provider], session_id=agent.session_id)


def requests(scene: Scene) -> list[Sent]:
    """The messages of everything that the first server of a scene was asked."""
    return [request["messages"] for request in scene.servers[0].requests]
