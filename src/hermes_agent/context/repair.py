"""A history as a model accepts it: every call answered, nothing answered twice.

A turn that crashed leaves calls without results. They are closed with a result that says
so; the model then knows what it does not know.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_agent.messages import Message

LOST = "This call was interrupted; it is unknown whether it took effect."


def lost_result(call_id: str, name: str) -> Message:
    """The result of a call whose outcome nobody knows."""
    content = json.dumps({"output": "", "exit_code": None, "error": LOST})
    return {"role": "tool", "content": content, "tool_call_id": call_id, "tool_name": name}


def dangling(messages: list[Message]) -> list[Message]:
    """Results to be added at the end, for calls of the last message that have none."""
    answered = {
        message.get("tool_call_id") for message in messages if message.get("role") == "tool"
    }
    last = next((message for message in reversed(messages) if message.get("role") != "tool"), None)
    if last is None or last.get("role") != "assistant":
        return []
    return [
        lost_result(call_id, name) for call_id, name in calls_of(last) if call_id not in answered
    ]


def calls_of(message: Message) -> list[tuple[str, str]]:
    """Ids and names of the calls a message makes."""
    calls = message.get("tool_calls") or []
    found: list[tuple[str, str]] = []
    for call in calls if isinstance(calls, list) else []:
        function: Any = call.get("function") or {}
        found.append((str(call.get("id") or ""), str(function.get("name") or "")))
    return found


def acceptable(messages: list[Message]) -> list[Message]:
    """The same conversation without what a provider would refuse.

    Results without their call are left out, calls without a result get one right behind,
    and empty answers of interrupted turns are left out.
    """
    kept: list[Message] = []
    open_calls: dict[str, str] = {}
    for message in messages:
        role = message.get("role")
        if role == "tool":
            call_id = str(message.get("tool_call_id") or "")
            if call_id in open_calls:
                del open_calls[call_id]
                kept.append(message)
            continue
        kept += [lost_result(call_id, name) for call_id, name in open_calls.items()]
        open_calls = {}
        if role == "assistant":
            open_calls = dict(calls_of(message))
            if not open_calls and not message.get("content"):
                continue
        kept.append(message)
    return kept + [lost_result(call_id, name) for call_id, name in open_calls.items()]
