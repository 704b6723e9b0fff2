"""Here-documents, read line by line: the parser is not to be trusted with where they end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.shell_words import source

if TYPE_CHECKING:
    from tree_sitter import Node

INSIDE = frozenset({"heredoc_body", "heredoc_end", "heredoc_content"})


class Extent(NamedTuple):
    """The lines of a here-document: that of its `<<`, and that of its end."""

    start: int
    end: int
    strips_tabs: bool
    is_quoted: bool


def extent(redirect: Node, lines: list[str]) -> Extent | None:
    """Where bash sees a here-document begin and end; None when it has no end."""
    start = next((child for child in redirect.children if child.type == "heredoc_start"), None)
    if start is None:
        return None
    word = re.sub(r"['\"\\]", "", source(start))
    strips_tabs = redirect.children[0].type == "<<-"
    for row in range(start.start_point.row + 1, len(lines)):
        line = lines[row].lstrip("\t") if strips_tabs else lines[row]
        if line == word:
            return Extent(start.start_point.row, row, strips_tabs, word != source(start))
    return None


def is_sound(redirect: Node, text: str) -> bool:
    """Whether the parser saw the same here-document as bash will."""
    lines = text.split("\n")
    found = extent(redirect, lines)
    ends = [child for child in redirect.children if child.type == "heredoc_end"]
    if found is None or len(ends) != 1 or ends[0].start_point.row != found.end:
        return False
    others = [child for child in redirect.children if child.type not in INSIDE]
    if any(child.end_point.row != found.start for child in others):
        return False
    if lines[found.start].count("<<") > 1:
        return False  # several on one line
    body = "\n".join(lines[found.start + 1 : found.end])
    return found.is_quoted or ("`" not in body and "\\\n" not in body)


def body(redirect: Node) -> str | None:
    """The text of a here-document."""
    root = redirect
    while root.parent is not None:
        root = root.parent
    lines = b"\n" * root.start_point.row + (root.text or b"")
    found = extent(redirect, lines.decode(errors="replace").split("\n"))
    if found is None:
        return None
    rows = lines.decode(errors="replace").split("\n")[found.start + 1 : found.end]
    return "\n".join(row.lstrip("\t") if found.strips_tabs else row for row in rows) + "\n"
