"""What became of a turn, for programs that only want to know that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.events import TurnEnd
from hermes_agent.messages import Usage

if TYPE_CHECKING:
    from hermes_agent.events import TurnFinished
    from hermes_agent.messages import Message


def outcome(last: TurnFinished | None, messages: list[Message], session_id: str) -> dict[str, Any]:
    """The end of a turn as plain values; None is a turn that ended without a word."""
    usage = last.usage if last else Usage()
    end = last.end if last else TurnEnd.FAILED
    return {
        "final_response": last.text if last else "",
        "messages": messages,
        "completed": end is TurnEnd.COMPLETE,
        "failed": end is TurnEnd.FAILED,
        "interrupted": end is TurnEnd.INTERRUPTED,
        "turn_exit_reason": str(end),
        "error": (last.error or None) if last else None,
        "session_id": session_id,
        **{f"{name}_tokens": value for name, value in usage._asdict().items()},
    }
