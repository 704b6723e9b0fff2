"""A conversation as one line of the list: columns that give way when it is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_core import human_format
from hermes_core.terminal_text import fit, one_line, pad

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_cli.commands.sessions.browser.catalogue import Entry

GAP = "  "


class Field(NamedTuple):
    """One column: shown where the list has at least *from_cells*."""

    title: str
    cells: int
    from_cells: int
    right: bool = False


FIELDS = (
    Field("when", 11, 30),
    Field("source", 8, 54),
    Field("msgs", 6, 44, right=True),
)
PINNED, ARCHIVED, NO_MARK = "*", "-", " "


def heading(cells: int) -> str:
    """The titles of the columns."""
    return _line(NO_MARK, [field.title for field in FIELDS], "conversation", cells)


def line(entry: Entry, cells: int, now: float) -> str:
    """The columns of one conversation in exactly *cells* cells; harmless text."""
    row = entry.row
    mark = PINNED if row.get("pinned") else ARCHIVED if row.get("archived") else NO_MARK
    values = [
        human_format.ago(row.get("last_active") or row.get("started_at"), now),
        str(row.get("source") or ""),
        human_format.number(row.get("message_count") or 0),
    ]
    text = str(row.get("title") or row.get("preview") or "(empty)")
    if entry.snippet:
        text = f"{row.get('title') or row['id']}: {entry.snippet}"
    return _line(mark, values, text, cells)


def _line(mark: str, values: Iterable[str], text: str, cells: int) -> str:
    head = f"{mark} "
    room = cells - len(head)
    for field, value in zip(FIELDS, values, strict=True):
        if cells >= field.from_cells:
            head += pad(fit(one_line(value), field.cells), field.cells, right=field.right) + GAP
            room -= field.cells + len(GAP)
    return head + pad(fit(one_line(text), room), room)
