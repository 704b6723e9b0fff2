"""The list widget: renders only the visible rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hermes_core import human_format
from hermes_core.terminal_text import fit, one_line, pad

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events

    from hermes_cli.commands.sessions.browser.catalogue import RowEntry


COLUMN_GAP = "  "


class RowField(NamedTuple):
    """A column, visible if the list has at least *from_cells* cells."""

    title: str
    cells: int
    from_cells: int
    right: bool = False


FIELDS = (
    RowField("when", 11, 30),
    RowField("source", 8, 54),
    RowField("msgs", 6, 44, right=True),
)
PINNED, ARCHIVED, NO_MARK = "*", "-", " "


def heading(cells: int) -> str:
    """The titles of the columns."""
    return _line(NO_MARK, [field.title for field in FIELDS], "conversation", cells)


def line(entry: RowEntry, cells: int, now: float) -> str:
    """The columns of a conversation in exactly *cells* cells, without control characters."""
    row, session = entry.row, entry.row.session
    mark = PINNED if session.pinned else ARCHIVED if session.archived else NO_MARK
    values = [
        human_format.ago(row.last_active or session.started_at, now),
        session.source,
        human_format.number(session.message_count),
    ]
    text = row.name or "(empty)"
    if entry.snippet:
        text = f"{session.title or session.id}: {entry.snippet}"
    return _line(mark, values, text, cells)


def _line(mark: str, values: Iterable[str], text: str, cells: int) -> str:
    head = f"{mark} "
    room = cells - len(head)
    for field, value in zip(FIELDS, values, strict=True):
        if cells >= field.from_cells:
            head += (
                pad(fit(one_line(value), field.cells), field.cells, right=field.right) + COLUMN_GAP
            )
            room -= field.cells + len(COLUMN_GAP)
    return head + pad(fit(one_line(text), room), room)


HEADING_ROWS = 1
STYLES = {
    "heading": Style(bold=True),
    "selected": Style(reverse=True),
    "found": Style(color="cyan"),
    "archived": Style(dim=True),
    "plain": Style(),
}


class RowList(ScrollView, can_focus=False):
    """Conversations, one line each, one of them selected; the first line is the heading."""

    class Selected(Message, namespace="row"):
        """The selection changed."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[RowEntry] = ()
        self._position = 0
        self._now = time.time()

    @property
    def selected(self) -> RowEntry | None:
        """The selected row."""
        return self._entries[self._position] if self._entries else None

    @property
    def page_rows(self) -> int:
        """The number of visible rows."""
        return max(self.size.height - HEADING_ROWS, 1)

    def show(self, entries: Sequence[RowEntry], *, is_kept: bool) -> None:
        """Show other rows; *is_kept* keeps the selected conversation if it is still listed."""
        before = self.selected
        self._entries = entries
        self._now = time.time()
        if not is_kept:
            self._position = 0
        elif before is not None:
            self._position = self._place_of(before, default=self._position)
        self.virtual_size = Size(0, len(entries) + HEADING_ROWS)
        self.move_to(self._position)
        self.refresh()

    def _place_of(self, wanted: RowEntry, default: int) -> int:
        near = self._entries[default : default + 1]
        if near and near[0].row.id == wanted.row.id:
            return default
        places = (n for n, item in enumerate(self._entries) if item.row.id == wanted.row.id)
        return next(places, default)

    def move_by(self, rows: int) -> None:
        """Move the selection by *rows*."""
        self.move_to(self._position + rows)

    def move_to(self, position: int) -> None:
        """Select a row and scroll to it."""
        self._position = max(0, min(position, len(self._entries) - 1))
        top = round(self.scroll_y)
        if self._position < top:
            top = self._position
        elif self._position >= top + self.page_rows:
            top = self._position - self.page_rows + 1
        self.scroll_to(y=top, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Selected())

    def move_to_end(self) -> None:
        """Select the last row."""
        self.move_to(len(self._entries) - 1)

    def on_resize(self) -> None:
        """Keep the selected row in view."""
        self.move_to(self._position)

    def on_click(self, event: events.Click) -> None:
        """Select the clicked row."""
        if event.y >= HEADING_ROWS:
            self.move_to(round(self.scroll_y) + event.y - HEADING_ROWS)

    def render_line(self, y: int) -> Strip:
        """Render a line of the screen."""
        cells = self.scrollable_content_region.width
        if y < HEADING_ROWS:
            return _strip(heading(cells), "heading", cells)
        index = round(self.scroll_y) + y - HEADING_ROWS
        if index >= len(self._entries):
            return Strip.blank(cells)
        entry = self._entries[index]
        style = "found" if entry.snippet else "archived" if entry.row.session.archived else "plain"
        if index == self._position:
            style = "selected"
        return _strip(line(entry, cells, self._now), style, cells)


def _strip(text: str, style: str, cells: int) -> Strip:
    return Strip([Segment(text, STYLES[style])]).adjust_cell_length(cells)
