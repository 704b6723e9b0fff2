"""What happens in a turn, as the events that clients are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_agent import events
from hermes_conversation import agent_factory

if TYPE_CHECKING:
    Told = tuple[str, dict[str, Any]]

STATUS: Final = {
    events.TurnEnd.COMPLETE: "complete",
    events.TurnEnd.TOO_LONG: "complete",
    events.TurnEnd.INTERRUPTED: "interrupted",
    events.TurnEnd.FAILED: "error",
}


def told(event: events.Event) -> Told | None:
    """The name and the payload under which a client hears of *event*; None if it does not."""
    if isinstance(event, events.TextDelta):
        return "message.delta", {"text": event.text}
    if isinstance(event, events.ReasoningDelta):
        return "reasoning.delta", {"text": event.text}
    if isinstance(event, events.ToolStarted | events.ToolOutput | events.ToolFinished):
        return _tool(event)
    if isinstance(event, events.Retrying):
        return "status.update", {"kind": "retrying", "text": event.reason}
    if isinstance(event, events.Notice):
        return "status.update", {"kind": "status", "text": event.text}
    return None


def _tool(event: events.ToolStarted | events.ToolOutput | events.ToolFinished) -> Told:
    if isinstance(event, events.ToolOutput):
        return "tool.output", {"tool_id": event.call_id, "text": event.text}
    call = event.call
    about = {"tool_id": call.id, "name": call.name}
    if isinstance(event, events.ToolStarted):
        context = agent_factory.summary(call.name, call.arguments)
        return "tool.start", {**about, "context": context, "args_text": call.arguments}
    return (
        "tool.complete",
        {**about, "result": event.result, "duration_s": round(event.seconds, 3)},
    )


def ended(finished: events.TurnFinished) -> dict[str, Any]:
    """The payload of `message.complete`."""
    return {
        "text": finished.text,
        "status": STATUS[finished.end],
        "error": finished.error or None,
        "usage": finished.usage._asdict(),
    }


def broken(error: BaseException) -> dict[str, Any]:
    """The payload of `message.complete` when a turn fell over instead of ending."""
    return {"text": "", "status": "error", "error": str(error), "usage": {}}
