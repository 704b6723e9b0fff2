"""Shows the events of a conversation on the screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.tools.prompter import RULE_SEPARATOR, parse_answer
from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import ClarifyDialog, QuestionDialog, SecretDialog
from hermes_tui.messages import UserMessage, entries
from hermes_tui.submission import UNREACHABLE
from tui_gateway.client import GONE

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp

DAEMON_CRASHES: Final = (
    "The daemon keeps crashing; run `hermes doctor` or check its log. The next Enter tries again."
)
ANSWER_METHODS: Final = {
    "approval.request": ("approval.respond", "choice"),
    "clarify.request": ("clarify.respond", "answer"),
    "secret.request": ("secret.respond", "value"),
}
QUESTION_DIALOGS: Final = {
    "approval.request": ApprovalDialog,
    "clarify.request": ClarifyDialog,
    "secret.request": SecretDialog,
}


class EventView:
    """A handler for each kind of event."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._is_lost = False  # no calls are possible until reconnected
        self._handlers = {
            "message.start": self._begin,
            "message.delta": self._text,
            "reasoning.delta": self._reasoning,
            "tool.start": self._tool,
            "tool.output": self._output,
            "tool.complete": self._result,
            "steer.read": self._read,
            "status.update": self._status,
            "message.complete": self._end,
            "session.info": self._info,
            "session.changed": self._changed,
            "question.closed": self._closed,
            GONE: self._connection_lost,
        }

    async def show(self, kind: str, payload: dict[str, Any]) -> None:
        """Show an event; unknown kinds are ignored."""
        if kind in QUESTION_DIALOGS:
            await self._ask(kind, payload)
        elif kind in self._handlers:
            await self._handlers[kind](payload)

    async def show_all(self) -> None:
        """Show the conversation with its running turn."""
        app, conversation = self._app, self._app.conversation
        await app.transcript.load(list(entries(conversation.messages)))
        app.status.set_info(conversation.info)
        unread = conversation.pop_unread()
        if unread:
            app.prompt.prepend(unread)
        inflight = conversation.inflight
        if inflight is None:
            return
        app.show_busy()
        if inflight["asked"]:
            await app.transcript.add(UserMessage(inflight["asked"]))
        if inflight["text"]:
            await app.transcript.stream(inflight["text"])
        for tool in inflight["tools"]:
            await app.transcript.start_tool(tool["tool_id"], tool["context"])
        for text in inflight["waiting"]:
            await app.transcript.add(UserMessage(text, is_waiting=True))
        for question in inflight["questions"]:
            await self.show(question["type"], question["payload"])

    async def reload(self) -> bool:
        """Reload and show the conversation; whether it succeeded."""
        try:
            await asyncio.to_thread(self._app.conversation.reload)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
            return False
        await self.show_all()
        return True

    async def _begin(self, payload: dict[str, Any]) -> None:
        waiting = self._app.transcript.find_waiting(payload["text"])
        if waiting is not None:
            waiting.remove_class("waiting")
        elif not self._app.transcript.ends_with_prompt(payload["text"]):
            await self._app.transcript.add(UserMessage(payload["text"]))
        self._app.status.attach(0)
        self._app.show_busy()

    async def _text(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.stream(payload["text"])

    async def _reasoning(self, payload: dict[str, Any]) -> None:
        await self._app.transcript.add_reasoning(payload["text"])

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
        self._app.transcript.mark_read()

    async def _status(self, payload: dict[str, Any]) -> None:
        if payload["kind"] == "retrying":
            self._app.status.set_note(payload["text"])
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
            self._app.prompt.prepend(payload["unread"])
        self._app.show_idle()

    async def _info(self, payload: dict[str, Any]) -> None:
        self._app.status.set_info(payload)

    async def _connection_lost(self, _payload: dict[str, Any]) -> None:
        """Reconnect after the connection to the daemon is lost."""
        self._is_lost = True
        self._app.show_idle()
        for question in self._questions():
            await self._remove(question)
        await self._app.transcript.finish_answer()
        await self.reconnect_if_lost()

    async def reconnect_if_lost(self) -> bool:
        """Reconnect if the connection is lost; whether calls are possible."""
        if not self._is_lost:
            return True
        try:
            self._is_lost = not await asyncio.to_thread(self._app.conversation.reconnect)
        except UNREACHABLE as error:
            await self._app.note(f"Conversation unreachable: {error}", is_error=True)
            return False
        if self._is_lost:
            await self._app.note(DAEMON_CRASHES, is_error=True)
            return False
        await self.show_all()
        await self._app.note("Reconnected after a lost connection. Nothing shown was lost.")
        return True

    async def _changed(self, _payload: dict[str, Any]) -> None:
        """Reload because another client changed the history."""
        notices = self._app.transcript.last_notices()
        if await self.reload():
            for notice in notices:
                await self._app.note(notice.text, is_error=notice.has_class("error"))

    async def _closed(self, payload: dict[str, Any]) -> None:
        """Close the dialog of a question that was answered elsewhere or cancelled."""
        for question in self._questions(payload["request_id"]):
            await self._remove(question)

    def _questions(self, request_id: str = "") -> list[QuestionDialog]:
        """The open question dialogs, or the one with that ID."""
        dialogs = [
            screen for screen in self._app.screen_stack if isinstance(screen, QuestionDialog)
        ]
        return [dialog for dialog in dialogs if request_id in ("", dialog.request_id)]

    async def _remove(self, question: QuestionDialog) -> None:
        if question is self._app.screen:
            await question.dismiss()
            return
        # Only the topmost screen can be dismissed.
        self._app._screen_stack.remove(question)  # noqa: SLF001 - no public API
        await question.remove()
        self._app.screen.refresh(layout=True)

    async def _ask(self, kind: str, payload: dict[str, Any]) -> None:
        method, name = ANSWER_METHODS[kind]
        if self._questions(payload["request_id"]):
            return  # already open

        def answered(text: str | None) -> None:
            if text is not None:
                params = {name: text, "request_id": payload["request_id"]}
                if kind == "approval.request":
                    answer = parse_answer(text)
                    rule = RULE_SEPARATOR.join(answer.rules)
                    params |= {"choice": answer.choice, "rule": rule, "reason": answer.reason}
                self._app.submission.call_in_background(method, **params)

        self._app.bell()
        self._app.push_screen(QUESTION_DIALOGS[kind](payload), answered)
