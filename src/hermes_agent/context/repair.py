"""Repairs a history for a model: every tool call has exactly one result.

A crashed turn leaves calls without results. They get a result that says the outcome is
unknown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_agent.messages import Message

LOST_RESULT_TEXT = "This call was interrupted; it is unknown whether it took effect."


def lost_result(call_id: str, name: str) -> Message:
    """The result of a call with an unknown outcome."""
    content = json.dumps({"output": "", "exit_code": None, "error": LOST_RESULT_TEXT})
    return {"role": "tool", "content": content, "tool_call_id": call_id, "tool_name": name}


def missing_results(messages: list[Message]) -> list[Message]:
    """Results to append for unanswered calls of the last message."""
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
    """IDs and names of the calls of a message."""
    calls = message.get("tool_calls") or []
    pairs: list[tuple[str, str]] = []
    for call in calls:
        function = call.get("function")
        name = function.get("name") if function else ""
        pairs.append((str(call.get("id") or ""), str(name or "")))
    return pairs


def repaired(messages: list[Message]) -> list[Message]:
    """The conversation without what a provider would reject.

    Results without a call and empty answers are dropped; calls without a result get one.
    """
    result: list[Message] = []
    open_calls: dict[str, str] = {}
    for message in messages:
        role = message.get("role")
        if role == "tool":
            call_id = str(message.get("tool_call_id") or "")
            if call_id in open_calls:
                del open_calls[call_id]
                result.append(message)
            continue
        result += [lost_result(call_id, name) for call_id, name in open_calls.items()]
        open_calls = {}
        if role == "assistant":
            open_calls = dict(calls_of(message))
            if not open_calls and not message.get("content"):
                continue
        result.append(message)
    return result + [lost_result(call_id, name) for call_id, name in open_calls.items()]
