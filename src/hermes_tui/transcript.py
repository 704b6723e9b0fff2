"""The transcript: one widget for each message, the latest at the bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown, Static

from hermes_cli.display import clean, fit, one_line
from hermes_tui.past import Entry, has_failed, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.widget import Widget
    from textual.widgets.markdown import MarkdownStream

SHOWN_MESSAGES: Final = 100
MOST_MESSAGES: Final = 300  # every widget costs a little with every key
RESULT_LINES: Final = 40
LABEL_COLUMNS: Final = 70


class Said(Static):
    """What the user said; `waiting` until the agent has read it."""

    def __init__(self, text: str, *, is_waiting: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="waiting" if is_waiting else "")
        self.text = text


class Notice(Static):
    """A line beside the conversation."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="error" if is_error else "")
        self.text = text


class Answer(Markdown):
    """What the agent says, while it says it and afterwards."""

    def __init__(self, text: str = "") -> None:
        super().__init__(clean(text), open_links=False)
        self._stream: MarkdownStream | None = None

    async def more(self, text: str) -> None:
        """A piece of it."""
        if self._stream is None:
            self._stream = Markdown.get_stream(self)
        await self._stream.write(clean(text))

    async def finish(self) -> None:
        """There is no more."""
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None


class ToolRow(Static, can_focus=True):
    """A tool in one line; Enter or a click shows what it answered."""

    BINDINGS: ClassVar = [Binding("enter,space", "open_or_close", "show or hide")]

    def __init__(self, label: str, result: str | None = None) -> None:
        super().__init__()
        self.label = label
        self.result = result
        self._output = ""
        self._seconds: float | None = None
        self._is_open = False

    def on_mount(self) -> None:
        """Show the line."""
        self._draw()

    def add_output(self, text: str) -> None:
        """Something it prints while it runs."""
        self._output = (self._output + text)[-20_000:]
        if self._is_open:
            self._draw()

    def finish(self, result: str, seconds: float) -> None:
        """Its answer."""
        self.result, self._seconds = result, seconds
        self._draw()

    def action_open_or_close(self) -> None:
        """Show or hide the answer."""
        self._is_open = not self._is_open
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """As Enter."""
        event.stop()
        self.action_open_or_close()

    def _draw(self) -> None:
        self.update(Content.assemble(*self._line(), *self._below()))

    def _line(self) -> list[str | tuple[str, str]]:
        name, _, argument = fit(one_line(self.label), LABEL_COLUMNS).partition(" ")
        took = "" if self._seconds is None else f"  {self._seconds:.1f} s"
        mark = ("… ", "$warning")
        if self.result is not None:
            mark = ("✗ ", "$error") if has_failed(self.result) else ("✓ ", "$success")
        return [mark, (name, "bold"), f" {argument}", (took, "dim")]

    def _below(self) -> list[str | tuple[str, str]]:
        if not self._is_open:
            return []
        if self.result is None:
            lines = clean(self._output).splitlines()[-RESULT_LINES:]
        else:
            lines = clean(readable(self.result)).splitlines()
        rest = len(lines) - RESULT_LINES
        shown = [f"\n  {line}" for line in lines[:RESULT_LINES]] or ["\n  (nothing)"]
        if rest > 0:
            shown.append(f"\n  … {rest} more lines")
        return [("".join(shown), "dim")]


class Folded(Static, can_focus=True):
    """Messages that are not shown; Enter or a click shows some of them."""

    BINDINGS: ClassVar = [Binding("enter,space", "unfold", "show")]

    class Opened(Message):
        """Somebody wants to see them."""

    def __init__(self, count: int) -> None:
        super().__init__(Content(f"… {count:,} earlier messages"))

    def action_unfold(self) -> None:
        """Ask for them."""
        self.post_message(self.Opened())

    def on_click(self) -> None:
        """As Enter."""
        self.action_unfold()


class Transcript(VerticalScroll, can_focus=False):
    """Everything that was said, as far as it is shown."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._earlier: Sequence[Entry] = ()
        self._answer: Answer | None = None
        self._tools: dict[str, ToolRow] = {}

    def on_mount(self) -> None:
        """Stay at the end, unless somebody looks back."""
        self.anchor()

    async def load(self, found: Sequence[Entry]) -> None:
        """Show a conversation in place of what is shown."""
        await self.remove_children()
        self._answer, self._tools = None, {}
        self._earlier, shown = found[:-SHOWN_MESSAGES], found[-SHOWN_MESSAGES:]
        await self.mount_all([*self._fold(), *map(_widget, shown)])
        self.anchor()

    def _fold(self) -> list[Widget]:
        return [Folded(len(self._earlier))] if self._earlier else []

    async def fold(self) -> None:
        """Hide the oldest where too many are shown."""
        shown = [one for one in self.children if not isinstance(one, Folded)]
        if len(shown) <= MOST_MESSAGES:
            return
        gone = shown[:-SHOWN_MESSAGES]
        self._earlier = [*self._earlier, *map(_entry, gone)]
        await self.remove_children([*self.query(Folded), *gone])
        await self.mount_all(self._fold(), before=0)

    async def on_folded_opened(self, event: Folded.Opened) -> None:
        """Show some of the earlier messages."""
        event.stop()
        shown = self._earlier[-SHOWN_MESSAGES:]
        self._earlier = self._earlier[:-SHOWN_MESSAGES]
        await self.query(Folded).remove()
        await self.mount_all([*self._fold(), *map(_widget, shown)], before=0)

    async def add(self, widget: Widget) -> None:
        """One more at the end."""
        await self.finish_answer()
        await self.mount(widget)

    async def stream(self, text: str) -> None:
        """More of the answer."""
        if self._answer is None:
            answer = Answer()
            await self.mount(answer)
            self._answer = answer
        await self._answer.more(text)

    async def finish_answer(self) -> None:
        """What comes next is another message."""
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

    def read_by_agent(self) -> None:
        """What was waiting has been read."""
        self.query(Said).remove_class("waiting")


def _widget(entry: Entry) -> Widget:
    if entry.kind == "user":
        return Said(entry.text)
    if entry.kind == "assistant":
        return Answer(entry.text)
    return ToolRow(entry.text, entry.result) if entry.kind == "tool" else Notice(entry.text)


def _entry(widget: Widget) -> Entry:
    """What a widget shows, to be shown again."""
    if isinstance(widget, Said):
        return Entry("user", widget.text)
    if isinstance(widget, Answer):
        return Entry("assistant", widget.source)
    if isinstance(widget, ToolRow):
        return Entry("tool", widget.label, widget.result or "")
    return Entry("notice", widget.text if isinstance(widget, Notice) else "")
