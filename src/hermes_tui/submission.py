"""Sends input to the agent; it is shown at once, and returned to the input on failure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hermes_core.errors import HermesError
from hermes_tui.messages import UserMessage
from tui_gateway.frames import BUSY, RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_tui.app import HermesApp

    FailureCallback = Callable[[Exception], Awaitable[object]]

UNREACHABLE: Final = (RpcError, HermesError, OSError)  # exceptions of a failed call


class Submission:
    """Background calls whose results arrive as events."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app

    async def send(self, text: str) -> None:
        """Send a message."""
        app, message = self._app, UserMessage(text)
        await app.transcript.add(message)
        await app.transcript.collapse_oldest()
        app.transcript.anchor()
        app.show_busy()
        self.call_in_background("prompt.submit", self._return_to_input(message), text=text)

    async def send_while_busy(self, text: str, mode: str) -> None:
        """Send input during a turn: *mode* is `steer`, `queue` or `interrupt`."""
        message = UserMessage(text, is_waiting=True)
        await self._app.transcript.add_waiting(message)
        self._app.status.attach(0)  # the message owns the pictures
        self.call_in_background(f"session.{mode}", self._return_to_input(message), text=text)

    def stop(self) -> None:
        """Interrupt the turn."""
        self.call_in_background("session.interrupt", self._on_failure)

    def call_in_background(
        self, method: str, on_failure: FailureCallback | None = None, **params: JsonValue
    ) -> None:
        """Call a method in the background; an error is shown after *on_failure* ran."""
        self._app.run_worker(self._call(method, on_failure, params))

    async def _call(
        self, method: str, on_failure: FailureCallback | None, params: JsonObject
    ) -> None:
        try:
            await asyncio.to_thread(self._app.conversation.call, method, **params)
        except UNREACHABLE as error:
            if on_failure is not None:
                await on_failure(error)
            await self._app.note(str(error), is_error=True)

    def _return_to_input(self, message: UserMessage) -> FailureCallback:
        async def return_to_input(error: Exception) -> None:
            if message.is_attached:
                await message.remove()
            self._app.prompt.prepend(message.text)
            self._app.notify("The message was not sent; it is back in the input.", severity="error")
            await self._on_failure(error)

        return return_to_input

    async def _on_failure(self, error: Exception) -> None:
        is_running = isinstance(error, RpcError) and error.code == BUSY  # a turn of another client
        if not is_running:
            self._app.show_idle()
