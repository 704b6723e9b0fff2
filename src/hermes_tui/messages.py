"""Messages as they are shown: what was said, answered, thought, done."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown, Static

from hermes_conversation import agent_factory
from hermes_core.terminal_text import clean, fit, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from textual import events
    from textual.timer import Timer
    from textual.widget import Widget
    from textual.widgets.markdown import MarkdownStream

    Piece = str | tuple[str, str]


class TranscriptEntry(NamedTuple):
    """Something to show: `user`, `assistant`, `thought`, `tool` or `notice`, and its words."""

    kind: str
    text: str
    result: str = ""


def entries(messages: Iterable[dict[str, Any]]) -> Iterator[TranscriptEntry]:
    """What was said and done, in its order."""
    calls: list[str] = []
    for message in messages:
        role, text = message["role"], _text(message.get("content"))
        if role == "tool":
            label = calls.pop(0) if calls else str(message.get("tool_name") or "tool")
            yield TranscriptEntry("tool", label, text)
        elif role == "assistant":
            if message.get("reasoning"):
                yield TranscriptEntry("thought", str(message["reasoning"]))
            calls = [_label(call) for call in _calls(message.get("tool_calls"))]
            if text.strip():
                yield TranscriptEntry("assistant", text)
        elif text.strip():
            yield TranscriptEntry("user" if role == "user" else "notice", text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _calls(stored: Any) -> list[dict[str, Any]]:
    if isinstance(stored, str):
        try:
            stored = json.loads(stored)
        except ValueError:
            return []
    return [call for call in stored or [] if isinstance(call, dict)]


def _label(call: dict[str, Any]) -> str:
    function = call.get("function") or {}
    return agent_factory.summarize_call(
        str(function.get("name") or "tool"), str(function.get("arguments"))
    )


def has_failed(result: str) -> bool:
    """Whether a tool's answer tells of a failure."""
    facts = _facts(result)
    return bool(facts.get("error")) or facts.get("exit_code") not in {None, 0}


def diff_of(result: str) -> str:
    """What a tool changed in a file, if it did."""
    found = _facts(result).get("diff")
    return found if isinstance(found, str) else ""


def readable(result: str) -> str:
    """A tool's answer for people: what it printed, or its facts one below the other."""
    facts = _facts(result)
    if not facts:
        return result
    for name in ("error", "output", "content"):
        if isinstance(facts.get(name), str) and facts[name]:
            return str(facts[name])
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value is not None)


def _facts(result: str) -> dict[str, Any]:
    try:
        found = json.loads(result)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


RESULT_LINES: Final = 40
LIVE_LINES: Final = 3
DIFF_LINES: Final = 12
DIFF_STYLES: Final = {"+": "$text-success", "-": "$text-error", "@": "$accent"}
LABEL_COLUMNS: Final = 70


class UserMessage(Static):
    """What the user said; `waiting` until the agent has read it."""

    def __init__(self, text: str, *, is_waiting: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="waiting" if is_waiting else "")
        self.text = text


class NoticeLine(Static):
    """A line beside the conversation."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="error" if is_error else "")
        self.text = text


class AgentMessage(Markdown):
    """What the agent says, while it says it and afterwards."""

    def __init__(self, text: str = "") -> None:
        super().__init__(clean(text), open_links=False)
        self._stream: MarkdownStream | None = None

    async def more(self, text: str) -> None:
        """A piece of it."""
        if not text:
            return
        if self._stream is None:
            self._stream = Markdown.get_stream(self)
        await self._stream.write(clean(text))

    async def finish(self) -> None:
        """There is no more."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            await stream.stop()
        except asyncio.CancelledError:
            # Of the stream, which had not begun, or of us?
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise


class Expandable(Static, can_focus=True):
    """Something in a line; Enter or a click shows all of it, and again the line."""

    BINDINGS: ClassVar = [Binding("enter,space", "open_or_close", "show or hide")]

    def __init__(self) -> None:
        super().__init__()
        self._is_open = False

    def action_open_or_close(self) -> None:
        """Show all of it, or the line."""
        self._is_open = not self._is_open
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """As Enter."""
        event.stop()
        self.action_open_or_close()

    def _draw(self) -> None:
        raise NotImplementedError


class ReasoningBlock(Expandable):
    """What the model thinks: a line, and all of it on Enter or a click."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    def on_mount(self) -> None:
        """Show the line."""
        self._draw()

    def more(self, text: str) -> None:
        """A piece of it."""
        self.text += text
        self._draw()

    def _draw(self) -> None:
        words = clean(self.text).strip()
        shown = words if self._is_open else fit(one_line(words), LABEL_COLUMNS)
        self.update(Content.assemble(("∴ ", "$accent"), (shown, "italic dim")))


class ToolRow(Expandable):
    """A tool in one line, with the end of what it prints while it runs.

    A change to a file is shown as what it changes; Enter or a click shows any answer whole.
    """

    def __init__(self, label: str, result: str | None = None) -> None:
        super().__init__()
        self.label = label
        self.result = result
        self._output = ""
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._clock: Timer | None = None

    def on_mount(self) -> None:
        """Show the line, and the time while it runs."""
        if self.result is None:
            self._clock = self.set_interval(1.0, self._draw)
        self._draw()

    def add_output(self, text: str) -> None:
        """Something it prints while it runs."""
        self._output = (self._output + text)[-20_000:]
        self._draw()

    def finish(self, result: str, seconds: float) -> None:
        """Its answer."""
        self.result, self._seconds = result, seconds
        if self._clock is not None:
            self._clock.stop()
        self._draw()

    def _draw(self) -> None:
        self.update(Content.assemble(*self._line(), *self._below()))

    def _line(self) -> list[Piece]:
        name, _, argument = fit(one_line(self.label), LABEL_COLUMNS).partition(" ")
        seconds = self._seconds
        mark = ("… ", "$warning")
        if self.result is not None:
            mark = ("✗ ", "$error") if has_failed(self.result) else ("✓ ", "$success")
        elif (running := time.monotonic() - self._began) >= 1:
            seconds = running
        took = "" if seconds is None else f"  {seconds:.1f} s"
        return [mark, (name, "bold"), f" {argument}", (took, "dim")]

    def _below(self) -> list[Piece]:
        if self.result is None:
            most = RESULT_LINES if self._is_open else LIVE_LINES
            return _dim(clean(self._output).splitlines()[-most:])
        diff = diff_of(self.result)
        if diff:
            return _colored(clean(diff).splitlines(), RESULT_LINES if self._is_open else DIFF_LINES)
        if not self._is_open:
            return []
        lines = clean(readable(self.result)).splitlines() or ["(nothing)"]
        return _dim(lines[:RESULT_LINES]) + _rest(len(lines) - RESULT_LINES)


def _dim(lines: list[str]) -> list[Piece]:
    return [("".join(f"\n  {line}" for line in lines), "dim")]


def _rest(count: int) -> list[Piece]:
    return [(f"\n  … {count} more lines", "dim")] if count > 0 else []


def _colored(lines: list[str], most: int) -> list[Piece]:
    """A change: what came and what went, without the two lines that name the file."""
    changed = [line for line in lines if not line.startswith(("--- ", "+++ "))]
    pieces: list[Piece] = [
        (f"\n  {line}", DIFF_STYLES.get(line[:1], "dim")) for line in changed[:most]
    ]
    return pieces + _rest(len(changed) - most)


class CollapsedMessages(Static, can_focus=True):
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


def widget_of(entry: TranscriptEntry) -> Widget:
    """What shows an entry."""
    if entry.kind == "user":
        return UserMessage(entry.text)
    if entry.kind == "assistant":
        return AgentMessage(entry.text)
    if entry.kind == "thought":
        return ReasoningBlock(entry.text)
    return ToolRow(entry.text, entry.result) if entry.kind == "tool" else NoticeLine(entry.text)


def entry_of(widget: Widget) -> TranscriptEntry:
    """What a widget shows, to be shown again."""
    if isinstance(widget, UserMessage):
        return TranscriptEntry("user", widget.text)
    if isinstance(widget, AgentMessage):
        return TranscriptEntry("assistant", widget.source)
    if isinstance(widget, ReasoningBlock):
        return TranscriptEntry("thought", widget.text)
    if isinstance(widget, ToolRow):
        return TranscriptEntry("tool", widget.label, widget.result or "")
    return TranscriptEntry("notice", widget.text if isinstance(widget, NoticeLine) else "")
