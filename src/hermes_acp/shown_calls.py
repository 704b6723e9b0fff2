"""The tool calls that an editor shows: their output so far, and an ID of their own for each.

An editor takes a known ID for the same call; some model servers repeat theirs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hermes_acp import tool_calls

if TYPE_CHECKING:
    from pathlib import Path

    from acp.schema import ToolCallProgress, ToolCallStart

    from tui_gateway.protocol import ToolComplete, ToolStart, ToolText

OUTPUT_PAUSE_SECONDS: Final = 0.1  # between two updates with output, which repeat all of it


@dataclass(slots=True)
class ShownCall:
    """A running call."""

    call: ToolStart
    shown_id: str
    output: str = ""
    output_at: float = 0.0


class ShownCalls:
    """The calls of one conversation."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._counts: dict[str, int] = {}
        self._running: dict[str, ShownCall] = {}

    def start(self, call: ToolStart) -> ToolCallStart:
        """A call has started."""
        number = self._counts[call.tool_id] = self._counts.get(call.tool_id, 0) + 1
        shown_id = call.tool_id if number == 1 and call.tool_id else f"{call.tool_id}-{number}"
        self._running[call.tool_id] = ShownCall(call, shown_id)
        update = tool_calls.start_call(call, self._cwd)
        return update.model_copy(update={"tool_call_id": shown_id})

    def add_output(self, event: ToolText) -> ToolCallProgress | None:
        """The output of a running call so far; None if it was shown a moment ago."""
        shown = self._running.get(event.tool_id)
        if shown is None:
            return None
        shown.output = (shown.output + event.text)[-tool_calls.MAX_OUTPUT_CHARACTERS :]
        now = time.monotonic()
        if now - shown.output_at < OUTPUT_PAUSE_SECONDS:
            return None
        shown.output_at = now
        return tool_calls.show_output(shown.shown_id, shown.output)

    def finish(self, result: ToolComplete) -> ToolCallProgress:
        """A call has ended."""
        shown = self._running.pop(result.tool_id, None)
        update = tool_calls.finish_call(result, shown.call if shown else None, self._cwd)
        shown_id = shown.shown_id if shown else result.tool_id
        return update.model_copy(update={"tool_call_id": shown_id})

    def find(self, tool_id: str) -> ShownCall | None:
        """A running call."""
        return self._running.get(tool_id)

    def is_running(self, tool_id: str) -> bool:
        """Whether a call is shown as running."""
        return tool_id in self._running

    def running(self) -> list[ToolStart]:
        """The calls that have not ended."""
        return [shown.call for shown in self._running.values()]
