"""What happens in a conversation, shown on its screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hermes_tui.dialogs import ApprovalDialog, ClarifyDialog, QuestionDialog, SecretDialog
from hermes_tui.messages import UserMessage, entries
from hermes_tui.submission import UNREACHABLE
from tui_gateway.client import GONE

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp

ENDING: Final = (
    "The daemon keeps crashing; run `hermes doctor` or check its log. The next Enter tries again."
)
ANSWERS: Final = {
    "approval.request": ("approval.respond", "choice"),
    "clarify.request": ("clarify.respond", "answer"),
    "secret.request": ("secret.respond", "value"),
}
QUESTIONS: Final = {
    "approval.request": ApprovalDialog,
    "clarify.request": ClarifyDialog,
    "secret.request": SecretDialog,
}


class EventView:
    """One way to show for each kind of event."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._is_lost = False  # nothing can be asked until the conversation is back
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
            "session.changed": self._changed,
            "question.closed": self._closed,
            GONE: self._gone,
        }

    async def show(self, kind: str, payload: dict[str, Any]) -> None:
        """Show an event; a kind that nobody knows here is nothing to look at."""
        if kind in QUESTIONS:
            await self._ask(kind, payload)
        elif kind in self._ways:
            await self._ways[kind](payload)

    async def show_all(self) -> None:
        """The conversation as it stands, with a turn that is under way."""
        app, conversation = self._app, self._app.conversation
        await app.transcript.load(list(entries(conversation.messages)))
        app.status.tell(conversation.info)
        unread = conversation.take_unread()
        if unread:
            app.prompt.put_before(unread)
        running = conversation.inflight
        if running is None:
            return
        app.work_begins()
        if running["asked"]:
            await app.transcript.add(UserMessage(running["asked"]))
        if running["text"]:
            await app.transcript.stream(running["text"])
        for tool in running["tools"]:
            await app.transcript.start_tool(tool["tool_id"], tool["context"])
        for text in running["waiting"]:
            await app.transcript.add(UserMessage(text, is_waiting=True))
        for question in running["questions"]:
            await self.show(question["type"], question["payload"])

    async def reload(self) -> bool:
        """Show anew what the conversation holds; whether it could be asked."""
        try:
            await asyncio.to_thread(self._app.conversation.reload)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
            return False
        await self.show_all()
        return True

    async def _begin(self, payload: dict[str, Any]) -> None:
        waiting = self._app.transcript.waiting(payload["text"])
        if waiting is not None:
            waiting.remove_class("waiting")
        elif not self._app.transcript.ends_with(payload["text"]):
            await self._app.transcript.add(UserMessage(payload["text"]))
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
            await self._app.note("Interrupted. Partial output was saved.")
        elif payload["status"] == "error":
            await self._app.note(str(payload["error"]), is_error=True)
        if payload["unread"]:
            await self._app.transcript.query(".waiting").remove()
            self._app.prompt.put_before(payload["unread"])
        self._app.work_ends()

    async def _info(self, payload: dict[str, Any]) -> None:
        self._app.status.tell(payload)

    async def _gone(self, _payload: dict[str, Any]) -> None:
        """The daemon is gone: another one takes the conversation up where it stands."""
        self._is_lost = True
        self._app.work_ends()
        for question in self._questions():
            await self._remove(question)
        await self._app.transcript.finish_answer()
        await self.make_sure()

    async def make_sure(self) -> bool:
        """Come back to the conversation if it was lost; whether it can be asked."""
        if not self._is_lost:
            return True
        try:
            self._is_lost = not await asyncio.to_thread(self._app.conversation.come_back)
        except UNREACHABLE as error:
            await self._app.note(f"Cannot reach the conversation: {error}", is_error=True)
            return False
        if self._is_lost:
            await self._app.note(ENDING, is_error=True)
            return False
        await self.show_all()
        await self._app.note("Reconnected after a lost connection. Nothing shown was lost.")
        return True

    async def _changed(self, _payload: dict[str, Any]) -> None:
        """What is shown is no longer what the conversation holds."""
        said_beside = self._app.transcript.last_notices()
        if await self.reload():
            for one in said_beside:
                await self._app.note(one.text, is_error=one.has_class("error"))

    async def _closed(self, payload: dict[str, Any]) -> None:
        """Answered elsewhere, or nobody waits for it any more."""
        for question in self._questions(payload["request_id"]):
            await self._remove(question)

    def _questions(self, request_id: str = "") -> list[QuestionDialog]:
        """The questions that are shown, or the one with that id."""
        shown = [one for one in self._app.screen_stack if isinstance(one, QuestionDialog)]
        return [one for one in shown if request_id in ("", one.request_id)]

    async def _remove(self, question: QuestionDialog) -> None:
        if question is self._app.screen:
            await question.dismiss()
            return
        # Below another screen, and only the topmost can be dismissed.
        self._app._screen_stack.remove(question)  # noqa: SLF001 - there is no other way
        await question.remove()
        self._app.screen.refresh(layout=True)

    async def _ask(self, kind: str, payload: dict[str, Any]) -> None:
        method, name = ANSWERS[kind]
        if self._questions(payload["request_id"]):
            return  # it is shown already

        def answered(text: str | None) -> None:
            if text is not None:
                facts = {name: text, "request_id": payload["request_id"]}
                self._app.saying.ask_later(method, **facts)

        self._app.bell()
        self._app.push_screen(QUESTIONS[kind](payload), answered)
