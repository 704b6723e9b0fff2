"""The stored messages of a conversation as updates, for an editor that loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.helpers import (
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message_text,
)

from hermes_acp.plans import plan_of
from hermes_conversation.agent_factory import summarize_call
from tui_gateway.protocol import ToolComplete, ToolStart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acp.helpers import SessionUpdate

    from hermes_acp.shown_calls import ShownCalls
    from hermes_core.messages import Content, ToolCallDict
    from tui_gateway.protocol import DisplayedMessage, OpenedState

LOST_RESULT: Final = '{"error": "Interrupted before it could finish."}'


def replay(opened: OpenedState, calls: ShownCalls) -> Iterator[SessionUpdate]:
    """The messages of a conversation, then the output of its running turn."""
    for message in opened.messages:
        if message["role"] == "user":
            yield update_user_message_text(text_of(message["content"]))
        elif message["role"] == "summary":
            yield update_agent_thought_text(text_of(message["content"]))
        elif message["role"] == "assistant":
            yield from _answer(message)
            yield from (plan_of(call) or calls.start(call) for call in calls_of(message))
        elif message["role"] == "tool":
            name, call_id = message["tool_name"] or "", message["tool_call_id"] or ""
            if calls.is_running(call_id):
                text = text_of(message["content"])
                yield calls.finish(ToolComplete(call_id, name, text, 0.0))
    running = () if opened.inflight is None else opened.inflight.tools
    running_ids = {tool.tool_id for tool in running}
    for call in calls.running():
        if call.tool_id not in running_ids:
            yield calls.finish(ToolComplete(call.tool_id, call.name, LOST_RESULT, 0.0))
    yield from _inflight(opened, calls)


def _inflight(opened: OpenedState, calls: ShownCalls) -> Iterator[SessionUpdate]:
    turn = opened.inflight
    if turn is None:
        return
    if turn.asked:
        yield update_user_message_text(turn.asked)
    if turn.text:
        yield update_agent_message_text(turn.text)
    for tool in turn.tools:
        if not calls.is_running(tool.tool_id) and plan_of(tool) is None:
            yield calls.start(tool)


def _answer(message: DisplayedMessage) -> Iterator[SessionUpdate]:
    if message["reasoning"]:
        yield update_agent_thought_text(message["reasoning"])
    text = text_of(message["content"])
    if text:
        yield update_agent_message_text(text)


def calls_of(message: DisplayedMessage) -> list[ToolStart]:
    """The tool calls of a stored answer."""
    calls = message["tool_calls"]
    return [_started(call) for call in calls] if isinstance(calls, list) else []


def _started(call: ToolCallDict) -> ToolStart:
    function = call.get("function")
    name, arguments = (function["name"], function["arguments"]) if function else ("", "")
    tool_id = call.get("id") or call.get("call_id") or ""
    return ToolStart(tool_id, name, summarize_call(name, arguments), arguments)


def text_of(content: Content) -> str:
    """The text of a message; pictures are named."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(str(text) for text in texts if text)
    return str(content or "")
