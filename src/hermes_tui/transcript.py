"""The transcript: one widget for each message, the latest at the bottom."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll

from hermes_tui.messages import (
    AgentMessage,
    CollapsedMessages,
    NoticeLine,
    ReasoningBlock,
    ToolRow,
    UserMessage,
    entry_of,
    widget_of,
    written_change,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.widget import Widget

    from hermes_tui.messages import TranscriptEntry
    from tui_gateway.protocol import ToolStart

BATCH_MESSAGES: Final = 100
MAX_MESSAGES: Final = 300  # each widget slows down every key press


class Transcript(VerticalScroll, can_focus=False):
    """The visible part of the conversation."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._earlier: Sequence[TranscriptEntry] = ()
        self._answer: AgentMessage | None = None
        self._reasoning: ReasoningBlock | None = None
        self._tools: dict[str, ToolRow] = {}

    def on_mount(self) -> None:
        """Stay at the end unless the user scrolls up."""
        self.anchor()

    async def load(self, entries: Sequence[TranscriptEntry]) -> None:
        """Replace the content."""
        await self.remove_children()
        self._answer, self._reasoning, self._tools = None, None, {}
        self._earlier, shown = entries[:-BATCH_MESSAGES], entries[-BATCH_MESSAGES:]
        await self.mount_all([*self._placeholder(), *map(widget_of, shown)])
        self.anchor()

    def _placeholder(self) -> list[Widget]:
        return [CollapsedMessages(len(self._earlier))] if self._earlier else []

    async def collapse_oldest(self) -> None:
        """Collapse the oldest messages if there are too many."""
        shown = [child for child in self.children if not isinstance(child, CollapsedMessages)]
        if len(shown) <= MAX_MESSAGES:
            return
        collapsed = shown[:-BATCH_MESSAGES]
        self._earlier = [*self._earlier, *map(entry_of, collapsed)]
        await self.remove_children([*self.query(CollapsedMessages), *collapsed])
        await self.mount_all(self._placeholder(), before=0)

    async def on_collapsed_messages_opened(self, event: CollapsedMessages.Opened) -> None:
        """Show the previous batch of messages."""
        event.stop()
        shown = self._earlier[-BATCH_MESSAGES:]
        self._earlier = self._earlier[:-BATCH_MESSAGES]
        await self.query(CollapsedMessages).remove()
        await self.mount_all([*self._placeholder(), *map(widget_of, shown)], before=0)

    async def add(self, widget: Widget) -> None:
        """Append a widget, before messages that wait to be read."""
        await self.finish_answer()
        await self._append(widget)

    async def add_notice(self, notice: NoticeLine) -> None:
        """Append a notice; an answer that is being written continues above it."""
        await self._append(notice)

    async def add_waiting(self, message: UserMessage) -> None:
        """Append a message that the agent reads later; what it writes until then is above it."""
        await self.mount(message)

    async def _append(self, widget: Widget) -> None:
        waiting = self.query(UserMessage).filter(".waiting")
        await self.mount(widget, before=waiting.first() if waiting else None)

    async def add_reasoning(self, text: str) -> None:
        """Append reasoning."""
        if self._reasoning is None:
            block = ReasoningBlock(text)
            await self.add(block)
            self._reasoning = block
        else:
            self._reasoning.append_delta(text)

    async def stream(self, text: str) -> None:
        """Append to the answer."""
        if not text:
            return
        self._reasoning = None
        if self._answer is None:
            answer = AgentMessage()
            await self._append(answer)
            self._answer = answer
        await self._answer.append_delta(text)

    async def finish_answer(self) -> None:
        """End the current answer."""
        self._reasoning = None
        if self._answer is not None:
            answer, self._answer = self._answer, None
            await answer.finish()

    async def drop_answer(self) -> None:
        """Remove the current answer: another attempt at it follows."""
        answer, reasoning = self._answer, self._reasoning
        await self.finish_answer()
        for shown in (answer, reasoning):
            if shown is not None:
                await shown.remove()

    async def start_tool(self, call: ToolStart) -> None:
        """Add the row of a running tool."""
        change = written_change(call.name, call.args_text, call.before)
        self._tools[call.tool_id] = ToolRow(call.context, change=change)
        await self.add(self._tools[call.tool_id])

    def tool(self, tool_id: str) -> ToolRow | None:
        """The row of a tool call."""
        return self._tools.get(tool_id)

    async def show_waiting(self, texts: Sequence[str]) -> None:
        """Show the messages of all clients that the agent reads later."""
        shown = self.query(UserMessage).filter(".waiting")
        if [message.text for message in shown] == list(texts):
            return
        await shown.remove()
        await self.mount_all(UserMessage(text, is_waiting=True) for text in texts)

    def ends_with_prompt(self, text: str) -> bool:
        """Whether the last widget is the user message *text*."""
        last = self.children[-1] if self.children else None
        return isinstance(last, UserMessage) and last.text == text

    def last_notices(self) -> list[NoticeLine]:
        """The notices at the end."""
        shown = reversed(self.children)
        trailing = itertools.takewhile(lambda widget: isinstance(widget, NoticeLine), shown)
        return [widget for widget in trailing if isinstance(widget, NoticeLine)][::-1]

    async def mark_read(self, text: str) -> bool:
        """Mark the waiting messages in *text* as read; what follows is below them.

        Whether there are any.
        """
        await self.finish_answer()
        unread = text
        for message in self.query(UserMessage).filter(".waiting"):
            if unread and unread.startswith(message.text):
                unread = unread.removeprefix(message.text).lstrip("\n")
                message.remove_class("waiting")
                self._move_before_waiting(message)
        return unread != text

    def _move_before_waiting(self, message: UserMessage) -> None:
        waiting = self.query(UserMessage).filter(".waiting")
        children = list(self.children)
        if waiting and children.index(waiting.first()) < children.index(message):
            self.move_child(message, before=waiting.first())

    def attach(self, items: Sequence[str]) -> None:
        """Show what is attached to the last message that the agent has got."""
        sent = self.query(UserMessage).exclude(".waiting")
        if sent:
            sent.last().attach(items)
