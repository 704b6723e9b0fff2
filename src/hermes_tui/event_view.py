"""Shows the events of a conversation on the screen."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from hermes_agent.tools.prompter import RULE_SEPARATOR, parse_answer
from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import ClarifyDialog, QuestionDialog, SecretDialog
from hermes_tui.messages import UserMessage, entries
from hermes_tui.submission import UNREACHABLE
from tui_gateway.protocol import (
    ApprovalQuestion,
    ClarifyQuestion,
    ConnectionLost,
    InputWaiting,
    MessageAttached,
    MessageComplete,
    MessageDelta,
    MessageStart,
    QuestionClosed,
    ReasoningText,
    SecretQuestion,
    SessionChanged,
    SessionInfo,
    StatusUpdate,
    SteerRead,
    ToolComplete,
    ToolStart,
    ToolText,
)

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp
    from tui_gateway.protocol import AgentQuestion, ClientEvent

MERGE_SECONDS: Final = 0.03


class QueuedEvent(NamedTuple):
    """An event, with the chunks of its text if it can be merged."""

    event: ClientEvent
    chunks: list[str]


class EventQueue:
    """An ordered queue; any thread puts, the UI thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[QueuedEvent] = deque()
        self._is_notified = False

    def put(self, event: ClientEvent) -> bool:
        """Add an event; whether the screen must be notified."""
        with self._lock:
            last = self._queue[-1] if self._queue else None
            chunks = [event.text] if is_merged(event) else []
            if chunks and last is not None and _can_merge(last.event, event):
                last.chunks.extend(chunks)
            else:
                self._queue.append(QueuedEvent(event, chunks))
            was_notified, self._is_notified = self._is_notified, True
            return not was_notified

    def take(self) -> ClientEvent | None:
        """The next event, or None; after None the next `put` notifies the screen."""
        with self._lock:
            if not self._queue:
                self._is_notified = False
                return None
            event, chunks = self._queue.popleft()
        if is_merged(event) and len(chunks) > 1:
            return dataclasses.replace(event, text="".join(chunks))
        return event

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        with self._lock:
            return not self._queue


def is_merged(event: ClientEvent) -> TypeGuard[MessageDelta | ReasoningText | ToolText]:
    """Whether adjacent events of this kind are merged."""
    return isinstance(event, MessageDelta | ReasoningText | ToolText)


def _can_merge(last: ClientEvent, event: ClientEvent) -> bool:
    if isinstance(last, ToolText) and isinstance(event, ToolText):
        return last.tool_id == event.tool_id
    return type(last) is type(event)


DAEMON_CRASHES: Final = (
    "The daemon keeps crashing; run `hermes doctor` or check its log. The next Enter tries again."
)


class EventView:
    """A handler for each kind of event."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._is_lost = False  # no calls are possible until reconnected

    async def show(self, event: ClientEvent) -> None:
        """Show an event; other kinds are ignored."""
        if not await self._show_output(event):
            await self._show_change(event)

    async def _show_output(self, event: ClientEvent) -> bool:
        """Show text of the model, a tool, or the user; whether the event is one."""
        transcript = self._app.transcript
        if isinstance(event, MessageDelta | ReasoningText | ToolStart):
            self._app.status.clear_note()  # a retry was successful
        match event:
            case MessageDelta():
                await transcript.stream(event.text)
            case ReasoningText():
                await transcript.add_reasoning(event.text)
            case MessageAttached():
                transcript.attach(event.items)
            case InputWaiting():
                await transcript.show_waiting(event.texts)
            case ToolStart():
                await transcript.start_tool(event)
            case ToolText() | ToolComplete():
                self._show_tool_output(event)
            case _:
                return False
        return True

    def _show_tool_output(self, event: ToolText | ToolComplete) -> None:
        row = self._app.transcript.tool(event.tool_id)
        if row is None:
            return
        if isinstance(event, ToolText):
            row.add_output(event.text)
        else:
            row.finish(event.result, event.duration_s)

    async def _show_change(self, event: ClientEvent) -> None:
        """Show a change of the turn or the conversation, or a question."""
        match event:
            case MessageStart():
                await self._begin(event.text)
            case MessageComplete():
                await self._end(event)
            case SteerRead():
                await self._read(event.text)
            case StatusUpdate():
                await self._status(event)
            case SessionInfo():
                self._app.status.set_info(event)
            case SessionChanged():
                await self._changed()
            case QuestionClosed():
                await self._closed(event.request_id)
            case ConnectionLost():
                await self._connection_lost()
            case ApprovalQuestion() | ClarifyQuestion() | SecretQuestion():
                await self._ask(event)

    async def show_all(self) -> None:
        """Show the conversation with its running turn."""
        app, conversation = self._app, self._app.conversation
        await app.transcript.load(list(entries(conversation.messages)))
        app.status.set_info(conversation.info)
        await self._take_back(*conversation.pop_unread())
        inflight = conversation.inflight
        if inflight is None:
            return
        app.show_busy()
        if inflight.asked:
            await app.transcript.add(UserMessage(inflight.asked))
        if inflight.text:
            await app.transcript.stream(inflight.text)
        for tool in inflight.tools:
            await app.transcript.start_tool(tool)
        await app.transcript.show_waiting(inflight.waiting)
        for question in inflight.open_questions():
            await self.show(question)

    async def reload(self) -> bool:
        """Reload and show the conversation; whether it succeeded."""
        try:
            await asyncio.to_thread(self._app.conversation.reload)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
            return False
        await self.show_all()
        self._app.check_trust()
        return True

    async def _begin(self, text: str) -> None:
        transcript = self._app.transcript
        if not await transcript.mark_read(text):  # it did not wait
            if not transcript.ends_with_prompt(text):
                await transcript.add(UserMessage(text))
            self._app.status.attach(0)
        self._app.show_busy()

    async def _read(self, text: str) -> None:
        if not await self._app.transcript.mark_read(text) and text:
            await self._app.transcript.add(UserMessage(text))

    async def _take_back(self, text: str, images: list[str]) -> None:
        """Return a message that the agent has not read to the input, with its pictures."""
        if text:
            self._app.prompt.prepend(text)
        for path in images:
            await self._app.attach_image(path)

    async def _status(self, update: StatusUpdate) -> None:
        if update.drops_text:
            await self._app.transcript.drop_answer()
        if update.topic == "retrying":
            self._app.status.set_note(update.text, update.seconds)
        elif update.text != self._app.conversation.notice:  # shown when it was opened
            if update.topic == "continued":
                await self._app.transcript.finish_answer()
            await self._app.note(update.text)

    async def _end(self, end: MessageComplete) -> None:
        await self._app.transcript.finish_answer()
        if end.status == "interrupted":
            await self._app.note("Interrupted. Partial output was saved.")
        elif end.status == "error":
            await self._app.note(str(end.error), is_error=True)
        elif end.notice:
            await self._app.note(end.notice, is_error=True)
        if end.status != "complete":  # what waited is returned to those who sent it
            await self._app.transcript.query(".waiting").remove()
        await self._take_back(end.unread, end.unread_images)
        self._app.announce_end()
        self._app.show_idle()
        self._app.check_trust()

    async def _connection_lost(self) -> None:
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
        for text in self._app.conversation.pop_notices():
            await self._app.note(text)
        await self._app.note("Reconnected after a lost connection. Nothing shown was lost.")
        return True

    async def _changed(self) -> None:
        """Reload because another client changed the history."""
        notices = self._app.transcript.last_notices()
        if await self.reload():
            for notice in notices:
                await self._app.note(notice.text, is_error=notice.has_class("error"))

    async def _closed(self, request_id: str) -> None:
        """Close the dialog of a question that was answered elsewhere or cancelled."""
        for question in self._questions(request_id):
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

    async def _ask(self, question: AgentQuestion) -> None:
        if self._questions(question.request_id):
            return  # already open

        def answered(text: str | None) -> None:
            if text is not None:
                self._answer(question, text)

        self._app.announce_question()
        self._app.push_screen(_dialog_of(question), answered)

    def _answer(self, question: AgentQuestion, text: str) -> None:
        call, request_id = self._app.submission.call_in_background, question.request_id
        if isinstance(question, ClarifyQuestion):
            call("clarify.respond", answer=text, request_id=request_id)
        elif isinstance(question, SecretQuestion):
            call("secret.respond", value=text, request_id=request_id)
        else:
            answer = parse_answer(text)
            call(
                "approval.respond",
                choice=answer.choice,
                rule=RULE_SEPARATOR.join(answer.rules),
                reason=answer.reason,
                request_id=request_id,
            )


def _dialog_of(question: AgentQuestion) -> QuestionDialog:
    if isinstance(question, ClarifyQuestion):
        return ClarifyDialog(question)
    if isinstance(question, SecretQuestion):
        return SecretDialog(question)
    return ApprovalDialog(question)
