"""What happens in a conversation, shown on its screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import HermesError
from hermes_tui.asking import Approval, Clarify, Question, Secret
from hermes_tui.messages import Said
from tui_gateway.link import GONE

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp

ENDING: Final = "The daemon ends again and again; `hermes doctor` and its log may say why."
ANSWERS: Final = {
    "approval.request": ("approval.respond", "choice"),
    "clarify.request": ("clarify.respond", "answer"),
    "secret.request": ("secret.respond", "value"),
}
QUESTIONS: Final = {
    "approval.request": Approval,
    "clarify.request": Clarify,
    "secret.request": Secret,
}


class Showing:
    """One way to show for each kind of event."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._ways = {
            "message.start": self._begin,
            "message.delta": self._text,
            "reasoning.delta": self._thought,
            "tool.start": self._tool,
            "tool.output": self._output,
            "tool.complete": self._result,
            "steer.read": self._read,
            "status.update": self._remark,
            "message.complete": self._end,
            "session.info": self._info,
            "question.closed": self._closed,
            GONE: self._gone,
        }

    async def show(self, kind: str, payload: dict[str, Any]) -> None:
        """Show an event; a kind that nobody knows here is nothing to look at."""
        if kind in QUESTIONS:
            await self._ask(kind, payload)
        elif kind in self._ways:
            await self._ways[kind](payload)

    async def _begin(self, payload: dict[str, Any]) -> None:
        waiting = self._app.transcript.waiting(payload["text"])
        if waiting is not None:
            waiting.remove_class("waiting")
        elif not self._app.transcript.ends_with(payload["text"]):
            await self._app.transcript.add(Said(payload["text"]))
        self._app.status.attach(0)
        self._app.work_begins()

    async def _text(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.stream(payload["text"])

    async def _thought(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.think(payload["text"])

    async def _tool(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.start_tool(payload["tool_id"], payload["context"])

    async def _output(self, payload: dict[str, Any]) -> None:
        row = self._app.transcript.tool(payload["tool_id"])
        if row is not None:
            row.add_output(payload["text"])

    async def _result(self, payload: dict[str, Any]) -> None:
        row = self._app.transcript.tool(payload["tool_id"])
        if row is not None:
            row.finish(payload["result"], payload["duration_s"])

    async def _read(self, _payload: dict[str, Any]) -> None:
        self._app.transcript.read_by_agent()

    async def _remark(self, payload: dict[str, Any]) -> None:
        if payload["kind"] == "retrying":
            self._app.status.remark(payload["text"])
        else:
            await self._app.note(payload["text"])

    async def _end(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.finish_answer()
        if payload["status"] == "interrupted":
            await self._app.note("Stopped. What was shown is kept.")
        elif payload["status"] == "error":
            await self._app.note(str(payload["error"]), is_error=True)
        if payload["unread"]:
            await self._app.transcript.query(".waiting").remove()
            self._app.prompt.fill(payload["unread"])
        self._app.work_ends()

    async def _info(self, payload: dict[str, Any]) -> None:
        self._app.status.tell(payload)

    async def _gone(self, _payload: dict[str, Any]) -> None:
        """The daemon is gone: another one takes the conversation up where it stands."""
        await self._app.transcript.finish_answer()
        try:
            is_back = await asyncio.to_thread(self._app.conversation.come_back)
        except (HermesError, OSError) as error:
            await self._app.note(f"The conversation cannot be reached: {error}", is_error=True)
            return
        if not is_back:
            await self._app.note(
                "The daemon ends again and again; see `hermes doctor`.", is_error=True
            )
            return
        self._app.work_ends()
        await self._app.show_all()
        await self._app.note("The connection was lost and is back. What was shown is kept.")

    async def _closed(self, payload: dict[str, Any]) -> None:
        """Answered elsewhere, or nobody waits for it any more."""
        screen = self._app.screen
        if isinstance(screen, Question) and screen.request_id == payload["request_id"]:
            await screen.dismiss()

    async def _ask(self, kind: str, payload: dict[str, Any]) -> None:
        method, name = ANSWERS[kind]

        def answered(text: str | None) -> None:
            if text is not None:
                facts = {name: text, "request_id": payload["request_id"]}
                self._app.run_worker(
                    lambda: self._app.conversation.call(method, **facts), thread=True
                )

        self._app.bell()
        self._app.push_screen(QUESTIONS[kind](payload), answered)
