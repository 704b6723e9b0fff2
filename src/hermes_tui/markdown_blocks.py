"""Markdown with what Textual leaves out: the alignment of table columns, and task lists.

Textual's blocks see one token each; `add_facts` notes on a table what its headers say, and on a
list item the box that its text begins with.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from textual.widgets import Markdown
from textual.widgets._markdown import (
    MarkdownTable,
    MarkdownTableContent,
    MarkdownUnorderedListItem,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token
    from textual.app import ComposeResult
    from textual.content import Content
    from textual.css.types import TextAlign
    from textual.widget import AwaitMount, Widget
    from textual.widgets.markdown import MarkdownBlock

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
