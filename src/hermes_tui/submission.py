"""What a person says, on its way to the agent: shown at once, put back where it cannot be said."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import HermesError
from hermes_tui.messages import UserMessage
from tui_gateway.frames import BUSY, RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_tui.app import HermesApp

    Failed = Callable[[Exception], Awaitable[object]]

UNREACHABLE: Final = (RpcError, HermesError, OSError)  # how a request fails


class Submission:
    """Requests whose answers are seen by what happens."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app

    async def say(self, text: str) -> None:
        """Say something to the agent."""
        app, said = self._app, UserMessage(text)
        await app.transcript.add(said)
        await app.transcript.fold()
        app.transcript.anchor()
        app.work_begins()
        self.ask_later("prompt.submit", self._back(said), text=text)

    async def say_meanwhile(self, text: str, way: str) -> None:
        """To the turn that runs, behind it, or in its place."""
        said = UserMessage(text, is_waiting=True)
        await self._app.transcript.add(said)
        self.ask_later(f"session.{way}", self._back(said), text=text)

    def stop(self) -> None:
        """Stop the turn."""
        self.ask_later("session.interrupt", self._ended)

    def ask_later(self, method: str, failed: Failed | None = None, **params: Any) -> None:
        """Ask something; why it cannot be done is told, and *failed* puts things in order."""
        self._app.run_worker(self._ask(method, failed, params))

    async def _ask(self, method: str, failed: Failed | None, params: dict[str, Any]) -> None:
        try:
            await asyncio.to_thread(self._app.conversation.call, method, **params)
        except UNREACHABLE as error:
            if failed is not None:
                await failed(error)
            await self._app.note(str(error), is_error=True)

    def _back(self, said: UserMessage) -> Failed:
        async def back(error: Exception) -> None:
            if said.is_attached:
                await said.remove()
            self._app.prompt.put_before(said.text)
            self._app.notify("The message was not sent; it is back in the input.", severity="error")
            await self._ended(error)

        return back

    async def _ended(self, error: Exception) -> None:
        is_running = isinstance(error, RpcError) and error.code == BUSY  # from elsewhere
        if not is_running:
            self._app.work_ends()
