"""New messages of all conversations, in the order in which they were stored.

A position is the newest message that was read. In a database that several processes write to, a
message with a lower ID may be committed later, so a position also names the recent IDs that were
missing; they are looked for again. A message is missed only if it is committed when MAX_GAP_AGE
later ones have been read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.messages.rows import MessageRow, select_list, to_messages
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Reader

NEWEST: Final = "SELECT coalesce(max(id), 0) FROM messages"
RECENT_IDS: Final = "SELECT id FROM messages WHERE id > ? AND id <= ?"
MAX_GAP_AGE: Final = 64  # IDs that may still be committed


class FeedPosition(NamedTuple):
    """The newest message that was read, and recent IDs that were missing."""

    newest: int
    missing: tuple[int, ...] = ()


class NewMessages(NamedTuple):
    """Messages after a position, and the next position."""

    rows: list[MessageRow]
    position: FeedPosition


class FeedRepository(Repository):
    """New messages of all conversations."""

    def end(self) -> FeedPosition:
        """The position after all messages."""
        return self.engine.read(lambda reader: _position(reader, int(reader.value(NEWEST))))

    def after(self, position: FeedPosition, limit: int) -> NewMessages:
        """The messages after a position, in order of their IDs; at most *limit* new ones."""

        def read(reader: Reader) -> NewMessages:
            names = reader.prepared(select_list)
            late = _rows_of(reader, names, position.missing)
            new = reader.rows(
                f"SELECT {names} FROM messages WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
                (position.newest, limit),
            )
            rows = to_messages([*late, *new])
            newest = max((row.id for row in rows), default=0)
            return NewMessages(rows, _position(reader, max(newest, position.newest)))

        return self.engine.read(read)


def _rows_of(reader: Reader, names: str, ids: Sequence[int]) -> list[tuple[object, ...]]:
    marks = ", ".join("?" * len(ids))
    sql = f"SELECT {names} FROM messages WHERE id IN ({marks}) ORDER BY id"  # noqa: S608
    return list(reader.rows(sql, tuple(ids))) if ids else []


def _position(reader: Reader, newest: int) -> FeedPosition:
    oldest = max(newest - MAX_GAP_AGE, 0)
    present = {row[0] for row in reader.rows(RECENT_IDS, (oldest, newest))}
    missing = (number for number in range(oldest + 1, newest) if number not in present)
    return FeedPosition(newest, tuple(missing))
