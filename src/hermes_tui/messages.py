"""Widgets for messages, reasoning, tool calls and notices."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown, Static
from textual.widgets._markdown import (
    MarkdownTable,
    MarkdownTableContent,
    MarkdownUnorderedListItem,
)

from hermes_agent.context.window import SUMMARIZED_NOTICE
from hermes_agent.events import END_MARKS
from hermes_agent.tools.text_diff import unified_diff
from hermes_conversation import agent_factory, attachments
from hermes_conversation.tool_results import ToolReport, report_of
from hermes_core import human_format
from hermes_core.json_values import object_in, text_in
from hermes_core.terminal_text import clean, fit, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token
    from textual import events
    from textual.app import ComposeResult
    from textual.css.types import TextAlign
    from textual.timer import Timer
    from textual.widget import AwaitMount, Widget
    from textual.widgets.markdown import MarkdownBlock, MarkdownStream

    from hermes_core.json_values import JsonObject
    from tui_gateway.protocol import DisplayedMessage

    Piece = str | tuple[str, str]


WRITE_TOOL: Final = "write_file"
MAX_CHARACTERS: Final = 100_000  # comparing more takes long


def written_change(name: str, arguments: str, before: str | None) -> str:
    """The diff from the text that a call replaces, None for a new file; empty for other calls."""
    if name != WRITE_TOOL:
        return ""
    try:
        fields = json.loads(arguments)
    except ValueError:
        return ""
    content = text_in(fields, "content") if isinstance(fields, dict) else ""
    if len(content) + len(before or "") > MAX_CHARACTERS:
        return ""
    return unified_diff(before or "", content, "file")


def stored_change(name: str, arguments: str, result: str) -> str:
    """The diff of a stored call that created a file; what another one replaced is not stored."""
    if name != WRITE_TOOL:
        return ""
    try:
        fields = json.loads(result)
    except ValueError:
        return ""
    is_new = isinstance(fields, dict) and fields.get("new") is True
    return written_change(name, arguments, None) if is_new else ""


# Markdown with what Textual leaves out: the alignment of table columns, and task lists.
#
# Textual's blocks see one token each; `add_facts` notes on a table what its headers say, and on a
# list item the box that its text begins with.

TASK: Final = re.compile(r"\[([ xX])\]\s+(?=\S)")
TASK_SIGNS: Final = {True: "☑ ", False: "☐ "}
ALIGNMENTS: Final[dict[object, TextAlign]] = {
    "text-align:left": "left",
    "text-align:center": "center",
    "text-align:right": "right",
}
COLUMNS_KEY, BULLET_KEY = "hermes_columns", "hermes_bullet"  # of a token's notes


def add_facts(tokens: Sequence[Token]) -> None:
    """Note the alignment of each table and the box of each task on their opening tokens."""
    table: Token | None = None
    for index, token in enumerate(tokens):
        if token.type == "table_open":
            table, token.meta[COLUMNS_KEY] = token, []
        elif token.type == "th_open" and table is not None:
            alignment = ALIGNMENTS.get(token.attrs.get("style"), "left")
            table.meta[COLUMNS_KEY].append(alignment)
        elif token.type == "list_item_open":
            _mark_task(token, tokens[index + 1 : index + 3])


def _mark_task(item: Token, following: Sequence[Token]) -> None:
    """Replace the brackets of a task by a box: the bullet, or the beginning of a numbered item."""
    if [token.type for token in following] != ["paragraph_open", "inline"]:
        return
    texts = following[1].children or []
    match = TASK.match(following[1].content)
    if match is None or not texts or not texts[0].content.startswith(match[0].rstrip()):
        return
    sign = TASK_SIGNS[match[1] != " "]
    rest = texts[0].content[len(match[0].rstrip()) :].lstrip()
    texts[0].content = f"{sign}{rest}" if item.info else rest
    if not item.info:
        item.meta[BULLET_KEY] = sign


class TaskListItem(MarkdownUnorderedListItem):
    """An item of a list; a task has a box in place of the bullet."""

    def __init__(self, markdown: Markdown, token: Token, bullet: str) -> None:
        super().__init__(markdown, token, token.meta.get(BULLET_KEY, bullet))


class AlignedTableContent(MarkdownTableContent):
    """The cells of a table, each with the alignment of its column."""

    def __init__(
        self, headers: list[Content], rows: list[list[Content]], columns: Sequence[TextAlign]
    ) -> None:
        super().__init__(headers, rows)
        self._columns = columns

    def mount_all(self, widgets: Iterable[Widget], **place: Any) -> AwaitMount:
        """Mount whole rows; also called for the rows that are streamed later."""
        cells = list(widgets)
        for index, cell in enumerate(cells):
            if self._columns:
                cell.styles.text_align = self._columns[index % len(self._columns)]
        return super().mount_all(cells, **place)


class AlignedTable(MarkdownTable):
    """A table whose columns are aligned as its delimiter row says."""

    def __init__(self, markdown: Markdown, token: Token) -> None:
        super().__init__(markdown, token)
        self._columns: list[TextAlign] = token.meta.get(COLUMNS_KEY, [])

    def compose(self) -> ComposeResult:
        """The cells."""
        for content in super().compose():
            if isinstance(content, MarkdownTableContent):
                yield AlignedTableContent(content.headers, content.rows, self._columns)


class RichMarkdown(Markdown):
    """Markdown with aligned tables and task lists."""

    BLOCKS = {  # noqa: RUF012 - declared so by Textual
        **Markdown.BLOCKS,
        "table_open": AlignedTable,
        "list_item_unordered_open": TaskListItem,
    }

    def _parse_markdown(self, tokens: Iterable[Token]) -> Iterable[MarkdownBlock]:
        parsed = list(tokens)
        add_facts(parsed)
        return super()._parse_markdown(parsed)


class TranscriptEntry(NamedTuple):
    """An entry: `user`, `assistant`, `thought`, `tool` or `notice`, and its text."""

    kind: str
    text: str
    result: str = ""
    attached: tuple[str, ...] = ()
    change: str = ""  # of a file, as a diff


def entries(messages: Iterable[DisplayedMessage]) -> Iterator[TranscriptEntry]:
    """The entries of stored messages, in order."""
    calls: list[NamedCall] = []
    for message in messages:
        role, text = message["role"], attachments.text_of(message["content"])
        if role == "tool":
            call = calls.pop(0) if calls else NamedCall(str(message.get("tool_name") or "tool"))
            change = stored_change(call.name, call.arguments, text)
            yield TranscriptEntry("tool", call.label, text, change=change)
        elif role == "assistant":
            if message.get("reasoning"):
                yield TranscriptEntry("thought", str(message["reasoning"]))
            calls = [_named(call) for call in _calls(message.get("tool_calls"))]
            if text.strip():
                yield TranscriptEntry("assistant", text)
            if mark := END_MARKS.get(str(message.get("finish_reason"))):
                yield TranscriptEntry("notice", f"{mark[0].upper()}{mark[1:]}.")
        elif role == "summary":
            yield TranscriptEntry("notice", SUMMARIZED_NOTICE)
            yield TranscriptEntry("thought", text)
        elif text.strip():
            kind = "user" if role == "user" else "notice"
            yield TranscriptEntry(kind, text, attached=_attached(message["content"]))


def _attached(content: object) -> tuple[str, ...]:
    """What is attached to a stored message."""
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    texts = [attachments.label_of(str(part.get("text", ""))) for part in parts[1:]]
    sizes = [part.get("bytes", 0) for part in parts if part.get("type") == "image"]
    return (*filter(None, texts), *(f"image, {human_format.size(size)}" for size in sizes))


def _calls(value: object) -> list[JsonObject]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    calls = value if isinstance(value, list) else []
    return [call for call in calls if isinstance(call, dict)]


class NamedCall(NamedTuple):
    """A tool call."""

    name: str
    arguments: str = ""

    @property
    def label(self) -> str:
        """The call in one line."""
        return agent_factory.summarize_call(self.name, self.arguments)


def _named(call: JsonObject) -> NamedCall:
    function = object_in(call, "function")
    return NamedCall(str(function.get("name") or "tool"), str(function.get("arguments")))


RESULT_LINES: Final = 40
LIVE_LINES: Final = 3
LONG_MESSAGE_LINES: Final = 12
SHOWN_MESSAGE_LINES: Final = 8
DIFF_LINES: Final = 12
DIFF_STYLES: Final = {"+": "$text-success", "-": "$text-error", "@": "$accent"}
LABEL_COLUMNS: Final = 70
PREVIEW_COLUMNS: Final = 200


class NoticeLine(Static):
    """A notice of the program."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="error" if is_error else "")
        self.text = text


class AgentMessage(RichMarkdown):
    """A message of the agent, streamed or complete."""

    def __init__(self, text: str = "") -> None:
        super().__init__(clean(text), open_links=False)
        self._stream: MarkdownStream | None = None

    async def append_delta(self, text: str) -> None:
        """Append a delta."""
        if not text:
            return
        if self._stream is None:
            self._stream = self.get_stream(self)
        await self._stream.write(clean(text))

    async def finish(self) -> None:
        """End the stream."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            await stream.stop()
        except asyncio.CancelledError:
            # Raised by a stream that had not started, or by a cancellation of this task.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise


class Expandable(Static, can_focus=True):
    """A one-line widget that Enter or a click expands and collapses."""

    BINDINGS: ClassVar = [Binding("enter,space", "open_or_close", "show or hide")]

    def __init__(self) -> None:
        super().__init__()
        self._is_open = False

    def action_open_or_close(self) -> None:
        """Expand or collapse."""
        self._is_open = not self._is_open
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Act as for Enter."""
        if self.can_focus:
            event.stop()
            self.action_open_or_close()

    def _draw(self) -> None:
        raise NotImplementedError


class UserMessage(Expandable):
    """A message of the user with what is attached; `waiting` until the agent has read it.

    Of a long one the beginning is shown; Enter or a click shows all.
    """

    def __init__(
        self, text: str, *, is_waiting: bool = False, attached: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.text = text
        self.attached = tuple(attached)
        self.can_focus = text.count("\n") >= LONG_MESSAGE_LINES
        self.set_class(is_waiting, "waiting")
        self._draw()

    def attach(self, items: Sequence[str]) -> None:
        """Show what is attached."""
        self.attached = tuple(items)
        self._draw()

    def _draw(self) -> None:
        lines = clean(self.text).splitlines()
        is_long = len(lines) > LONG_MESSAGE_LINES and not self._is_open
        shown = lines[:SHOWN_MESSAGE_LINES] if is_long else lines
        pieces: list[Piece] = ["\n".join(shown)]
        pieces += _more_lines(len(lines) - len(shown), indent="")
        pieces += [(f"\n+ {one_line(item)}", "dim") for item in self.attached]
        self.update(Content.assemble(*pieces))


class ReasoningBlock(Expandable):
    """The model's reasoning, collapsed to one line."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    def on_mount(self) -> None:
        """Draw the line."""
        self._draw()

    def append_delta(self, text: str) -> None:
        """Append a delta."""
        self.text += text
        self._draw()

    def _draw(self) -> None:
        text = clean(self.text).strip()
        shown = text if self._is_open else fit(one_line(text), LABEL_COLUMNS)
        self.update(Content.assemble(("∴ ", "$accent"), (shown, "italic dim")))


class ToolRow(Expandable):
    """A tool call: its last output while it runs, then the first lines of its result.

    A file change is shown as a diff; Enter or a click expands the result.
    """

    def __init__(self, label: str, result: str | None = None, change: str = "") -> None:
        super().__init__()
        self.label = label
        self.change = change
        self.result = result
        self._report = ToolReport() if result is None else report_of(result)
        self._output = ""
        self._started_at = time.monotonic()
        self._seconds: float | None = None
        self._clock: Timer | None = None

    def on_mount(self) -> None:
        """Draw the line, and the elapsed time while the tool runs."""
        if self.result is None:
            self._clock = self.set_interval(1.0, self._draw)
        self._draw()

    def add_output(self, text: str) -> None:
        """Append output of the running tool."""
        self._output = (self._output + text)[-20_000:]
        self._draw()

    def finish(self, result: str, seconds: float) -> None:
        """Set the result."""
        self.result, self._seconds = result, seconds
        self._report = report_of(result)
        if self._clock is not None:
            self._clock.stop()
        self._draw()

    def _draw(self) -> None:
        self.update(Content.assemble(*self._line(), *self._below()))

    def _line(self) -> list[Piece]:
        name, _, argument = fit(one_line(self.label), LABEL_COLUMNS).partition(" ")
        seconds, report = self._seconds, self._report
        mark = ("… ", "$warning")
        if self.result is not None:
            mark = ("✗ ", "$error") if report.is_failed else ("✓ ", "$success")
        elif (elapsed := time.monotonic() - self._started_at) >= 1:
            seconds = elapsed
        facts = "".join(f"  {fact}" for fact in (report.status, report.duration(seconds)) if fact)
        argument = argument and f" {argument}"
        return [mark, (name, "bold"), argument, (facts, "$error" if report.status else "dim")]

    def _below(self) -> list[Piece]:
        if self.result is None:
            limit = RESULT_LINES if self._is_open else LIVE_LINES
            return _dim(clean(self._output).splitlines()[-limit:])
        report = self._report
        diff = report.diff or ("" if report.is_failed else self.change)
        if diff:
            limit = RESULT_LINES if self._is_open else DIFF_LINES
            return _colored(clean(diff).splitlines(), limit)
        lines = clean("\n".join(report.lines)).splitlines()
        if self._is_open:
            lines = lines or ["(no output)"]
            return _dim(lines[:RESULT_LINES]) + _more_lines(len(lines) - RESULT_LINES)
        shown = [fit(line, PREVIEW_COLUMNS) for line in lines[: report.preview_lines]]
        return _dim(shown) + _more_lines(len(lines) - report.preview_lines)


def _dim(lines: list[str]) -> list[Piece]:
    return [("".join(f"\n  {line}" for line in lines), "dim")]


def _more_lines(count: int, indent: str = "  ") -> list[Piece]:
    noun = "line" if count == 1 else "lines"
    return [(f"\n{indent}… {count:,} more {noun}", "dim")] if count > 0 else []


def _colored(lines: list[str], limit: int) -> list[Piece]:
    """A colored diff without the two lines that name the file."""
    changed = [line for line in lines if not line.startswith(("--- ", "+++ "))]
    pieces: list[Piece] = [
        (f"\n  {line}", DIFF_STYLES.get(line[:1], "dim")) for line in changed[:limit]
    ]
    return pieces + _more_lines(len(changed) - limit)


class CollapsedMessages(Static, can_focus=True):
    """A placeholder for earlier messages; Enter or a click shows more of them."""

    BINDINGS: ClassVar = [Binding("enter,space", "unfold", "show")]

    class Opened(Message):
        """Earlier messages are requested."""

    def __init__(self, count: int) -> None:
        super().__init__(Content(f"… {count:,} earlier messages"))

    def action_unfold(self) -> None:
        """Request the messages."""
        self.post_message(self.Opened())

    def on_click(self) -> None:
        """Act as for Enter."""
        self.action_unfold()


def widget_of(entry: TranscriptEntry) -> Widget:
    """The widget for an entry."""
    if entry.kind == "user":
        return UserMessage(entry.text, attached=entry.attached)
    if entry.kind == "assistant":
        return AgentMessage(entry.text)
    if entry.kind == "thought":
        return ReasoningBlock(entry.text)
    if entry.kind == "tool":
        return ToolRow(entry.text, entry.result, entry.change)
    return NoticeLine(entry.text)


def entry_of(widget: Widget) -> TranscriptEntry:
    """The entry of a widget."""
    if isinstance(widget, UserMessage):
        return TranscriptEntry("user", widget.text, attached=widget.attached)
    if isinstance(widget, AgentMessage):
        return TranscriptEntry("assistant", widget.source)
    if isinstance(widget, ReasoningBlock):
        return TranscriptEntry("thought", widget.text)
    if isinstance(widget, ToolRow):
        return TranscriptEntry("tool", widget.label, widget.result or "", change=widget.change)
    return TranscriptEntry("notice", widget.text if isinstance(widget, NoticeLine) else "")
