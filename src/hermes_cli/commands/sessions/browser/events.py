"""What the picker's threads tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_cli.commands.sessions.browser.conversations import Hit

Row = dict[str, Any]


class RowsRead(Message):
    """More of the list."""

    def __init__(self, rows: list[Row], *, with_archived: bool, is_last: bool) -> None:
        super().__init__()
        self.rows = rows
        self.with_archived = with_archived
        self.is_last = is_last


class WordsFound(Message):
    """Where words were said."""

    def __init__(self, words: str, hits: Sequence[Hit]) -> None:
        super().__init__()
        self.words = words
        self.hits = hits


class EndingRead(Message):
    """The last messages of a conversation."""

    def __init__(self, row: Row, messages: list[Row]) -> None:
        super().__init__()
        self.row = row
        self.messages = messages


class RowChanged(Message):
    """A conversation was pinned, unpinned or moved into the trash."""

    def __init__(
        self, session_id: str, words: str, *, is_pinned: bool = False, is_gone: bool = False
    ) -> None:
        super().__init__()
        self.session_id = session_id
        self.words = words
        self.is_pinned = is_pinned
        self.is_gone = is_gone


class WorkFailed(Message):
    """Something could not be read or changed."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
