"""A prompt of the editor and the end of its turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from acp.schema import PromptResponse, Usage

from acp import RequestError

if TYPE_CHECKING:
    from acp.schema import StopReason

    from tui_gateway.protocol import MessageComplete

INTERNAL_ERROR: Final = -32603
STOPPED_DAEMON: Final = (
    "The Hermes daemon has stopped. The conversation is saved up to here; send your message again "
    "to continue."
)
STOP_REASONS: Final[dict[str, StopReason]] = {
    "length": "max_tokens",
    "filtered": "refusal",
    "step_limit": "max_turn_requests",
}


class PromptTurn:
    """A prompt that waits for the end of its turn.

    It is queued while a turn of another client runs; `has_started` is true once its own runs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.has_started = False
        self.is_cancelled = False
        self._ended: asyncio.Future[PromptResponse] = asyncio.get_running_loop().create_future()

    async def response(self) -> PromptResponse:
        """The response to the editor, when the turn has ended."""
        return await self._ended

    def end(self, event: MessageComplete) -> None:
        """The turn has ended."""
        if event.status == "error":
            self.fail(event.error or "The turn failed.")
        elif not self._ended.done():
            self._ended.set_result(_response(event))

    def cancel(self) -> None:
        """The turn did not start before it was cancelled."""
        if not self._ended.done():
            self._ended.set_result(PromptResponse(stop_reason="cancelled"))

    def fail(self, message: str) -> None:
        """The turn ended with an error."""
        if not self._ended.done():
            self._ended.set_exception(RequestError(INTERNAL_ERROR, message))


def _response(event: MessageComplete) -> PromptResponse:
    is_stopped = event.status == "interrupted"
    reason = "cancelled" if is_stopped else STOP_REASONS.get(event.problem, "end_turn")
    return PromptResponse(stop_reason=reason, usage=_usage(event.usage))


def _usage(tokens: dict[str, int]) -> Usage | None:
    """The tokens of the turn."""
    if not tokens:
        return None
    names = ("input", "output", "reasoning", "cache_read", "cache_write")
    sent, received, thought, read, written = (tokens.get(name, 0) for name in names)
    return Usage(
        total_tokens=sent + received + read + written,
        input_tokens=sent,
        output_tokens=received,
        thought_tokens=thought,
        cached_read_tokens=read,
        cached_write_tokens=written,
    )
