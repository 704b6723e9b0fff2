"""The preview of a conversation. Stored text is cleaned and never parsed as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from hermes_cli.commands.sessions import show as transcript
from hermes_core import human_format
from hermes_core.terminal_text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual.app import ComposeResult

    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import SessionRow

Piece = tuple[str, str]

MAX_CHARACTERS_BY_ROLE: Final = {"tool": 600}
MAX_CHARACTERS: Final = 4000
_STYLES: Final = {
    "user": "bold ansi_cyan",
    "assistant": "bold ansi_green",
    "tool": "bold ansi_yellow",
}


def pieces(session: SessionRow, messages: Iterable[MessageRow]) -> list[Piece]:
    """Heading and messages as (text, style) pieces, without control characters."""
    facts = (session.id, session.source, session.model, session.cwd)
    results = [
        (f"{one_line(session.title or session.id)}\n", "bold"),
        (one_line(" · ".join(fact for fact in facts if fact)) + "\n\n", "dim"),
    ]
    for message in messages:
        results += _message_pieces(message)
    return results


def _message_pieces(message: MessageRow) -> list[Piece]:
    role = message.role or "?"
    heading = f"{role} {message.tool_name}" if message.tool_name else role
    results = [
        (one_line(heading), _STYLES.get(role, "bold")),
        (f"  {human_format.local(message.timestamp)}\n", "dim"),
    ]
    body = transcript.content_text(message.content)
    longest = MAX_CHARACTERS_BY_ROLE.get(role, MAX_CHARACTERS)
    if len(body) > longest:
        body = body[:longest] + "…"
    if body:
        results.append((clean(body) + "\n", ""))
    calls = message.tool_calls or ()
    results += [(clean(transcript.call_line(call)) + "\n", "ansi_yellow") for call in calls]
    return [*results, ("\n", "")]


class Preview(VerticalScroll, can_focus=True):
    """A scrolling text, shown from its end."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = Content("")

    def compose(self) -> ComposeResult:
        """Create the text widget; a conversation may have been read before."""
        yield Static(self._shown, id="ending", markup=False)

    def show(self, texts: Sequence[Piece]) -> None:
        """Show another conversation."""
        self._shown = Content.assemble(*texts)
        for ending in self.query("#ending").results(Static):
            ending.update(self._shown)
        self.call_after_refresh(self.scroll_end, animate=False)
