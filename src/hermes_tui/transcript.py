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
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.widget import Widget

    from hermes_tui.messages import TranscriptEntry

SHOWN_MESSAGES: Final = 100
MAX_MESSAGES: Final = 300  # every widget costs a little with every key


class Transcript(VerticalScroll, can_focus=False):
    """Everything that was said, as far as it is shown."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._earlier: Sequence[TranscriptEntry] = ()
        self._answer: AgentMessage | None = None
        self._thought: ReasoningBlock | None = None
        self._tools: dict[str, ToolRow] = {}

    def on_mount(self) -> None:
        """Stay at the end, unless somebody looks back."""
        self.anchor()

    async def load(self, found: Sequence[TranscriptEntry]) -> None:
        """Show a conversation in place of what is shown."""
        await self.remove_children()
        self._answer, self._thought, self._tools = None, None, {}
        self._earlier, shown = found[:-SHOWN_MESSAGES], found[-SHOWN_MESSAGES:]
        await self.mount_all([*self._fold(), *map(widget_of, shown)])
        self.anchor()

    def _fold(self) -> list[Widget]:
        return [CollapsedMessages(len(self._earlier))] if self._earlier else []

    async def fold(self) -> None:
        """Hide the oldest where too many are shown."""
        shown = [one for one in self.children if not isinstance(one, CollapsedMessages)]
        if len(shown) <= MAX_MESSAGES:
            return
        gone = shown[:-SHOWN_MESSAGES]
        self._earlier = [*self._earlier, *map(entry_of, gone)]
        await self.remove_children([*self.query(CollapsedMessages), *gone])
        await self.mount_all(self._fold(), before=0)

    async def on_collapsed_messages_opened(self, event: CollapsedMessages.Opened) -> None:
        """Show some of the earlier messages."""
        event.stop()
        shown = self._earlier[-SHOWN_MESSAGES:]
        self._earlier = self._earlier[:-SHOWN_MESSAGES]
        await self.query(CollapsedMessages).remove()
        await self.mount_all([*self._fold(), *map(widget_of, shown)], before=0)

    async def add(self, widget: Widget) -> None:
        """One more at the end."""
        await self.finish_answer()
        await self.mount(widget)

    async def think(self, text: str) -> None:
        """More of what the model thinks."""
        if self._thought is None:
            await self.add(ReasoningBlock(text))
            self._thought = self.query(ReasoningBlock).last()
        else:
            self._thought.more(text)

    async def stream(self, text: str) -> None:
        """More of the answer."""
        if not text:
            return
        self._thought = None
        if self._answer is None:
            answer = AgentMessage()
            await self.mount(answer)
            self._answer = answer
        await self._answer.more(text)

    async def finish_answer(self) -> None:
        """What comes next is another message."""
        self._thought = None
        if self._answer is not None:
            answer, self._answer = self._answer, None
            await answer.finish()

    async def start_tool(self, tool_id: str, label: str) -> None:
        """A tool runs."""
        self._tools[tool_id] = ToolRow(label)
        await self.add(self._tools[tool_id])

    def tool(self, tool_id: str) -> ToolRow | None:
        """The row of a tool that runs."""
        return self._tools.get(tool_id)

    def waiting(self, text: str) -> UserMessage | None:
        """What waits and begins *text*, or is it."""
        found = self.query(UserMessage).filter(".waiting")
        return next((one for one in found if text.startswith(one.text)), None)

    def ends_with(self, text: str) -> bool:
        """Whether the last thing shown is that somebody said *text*."""
        last = self.children[-1] if self.children else None
        return isinstance(last, UserMessage) and last.text == text

    def last_notices(self) -> list[NoticeLine]:
        """The notices behind everything else."""
        shown = reversed(self.children)
        found = itertools.takewhile(lambda one: isinstance(one, NoticeLine), shown)
        return [one for one in found if isinstance(one, NoticeLine)][::-1]

    def read_by_agent(self) -> None:
        """What was waiting has been read."""
        self.query(UserMessage).remove_class("waiting")
