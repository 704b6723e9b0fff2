"""New messages of all conversations, in the order in which they were stored.

A position is the newest message that was read. In a database that several processes write to, a
message with a lower ID may be committed later, however many others are read before. So a position
also names the IDs that were missing, and they are looked for again until every transaction that
was running when they were noticed has ended (`horizon`): then they are no longer stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.dialect import DIALECT
from hermes_state.messages.rows import MessageRow, select_list, to_messages
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_state.engine.transaction import Reader

NEWEST: Final = "SELECT coalesce(max(id), 0) FROM messages"
RECENT_IDS: Final = "SELECT id FROM messages WHERE id > ? AND id <= ?"
# Numbers of transactions: up to the first all have ended, the second has not begun.
ENDED: Final = f"SELECT {DIALECT.newest_change}"
NOT_BEGUN: Final = f"SELECT {DIALECT.next_change}"
# IDs of transactions that were rolled back are missing, too, until their horizon is reached.
MAX_MISSING: Final = 2000


class FeedPosition(NamedTuple):
    """The newest message that was read, and IDs before it that may still be committed."""

    newest: int
    missing: tuple[int, ...] = ()
    horizon: int = 0  # the transactions before it may store the missing IDs


class NewMessages(NamedTuple):
    """Messages after a position, and the next position."""

    rows: list[MessageRow]
    position: FeedPosition


class FeedRepository(Repository):
    """New messages of all conversations."""

    def end(self) -> FeedPosition:
        """The position after all messages."""

        def read(reader: Reader) -> FeedPosition:
            newest = int(reader.value(NEWEST))
            oldest = max(newest - MAX_MISSING, 0)
            present = (row[0] for row in reader.rows(RECENT_IDS, (oldest, newest)))
            return self._position(reader, newest, _missing(oldest, newest, present))

        return self.engine.read(read)

    def after(self, position: FeedPosition, limit: int) -> NewMessages:
        """The messages after a position, in order of their IDs; at most *limit* new ones."""

        def read(reader: Reader) -> NewMessages:
            # Before the missing IDs are looked for: what has ended by now is found.
            is_final = int(reader.value(ENDED) or 0) + 1 >= position.horizon
            names = reader.prepared(select_list)
            late = _rows_of(reader, names, position.missing)
            new = reader.rows(
                f"SELECT {names} FROM messages WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
                (position.newest, limit),
            )
            rows = to_messages([*late, *new])
            found = {row.id for row in rows}
            newest = max(position.newest, *found) if found else position.newest
            missing = [
                *(number for number in position.missing if not is_final and number not in found),
                *_missing(position.newest, newest, found),
            ]
            return NewMessages(rows, self._position(reader, newest, missing))

        return self.engine.read(read)

    def _position(self, reader: Reader, newest: int, missing: list[int]) -> FeedPosition:
        """A position; in a file, IDs are in the order of commits and none is missing."""
        if self.engine.database.is_file or not missing:
            return FeedPosition(newest)
        return FeedPosition(newest, tuple(missing[-MAX_MISSING:]), int(reader.value(NOT_BEGUN)))


def _missing(oldest: int, newest: int, present: Iterable[int]) -> list[int]:
    """The IDs between two that are not present, at most MAX_MISSING of the latest."""
    known = set(present)
    numbers = range(max(oldest, newest - MAX_MISSING) + 1, newest)
    return [number for number in numbers if number not in known]


def _rows_of(reader: Reader, names: str, ids: Iterable[int]) -> list[tuple[object, ...]]:
    numbers = tuple(ids)
    marks = ", ".join("?" * len(numbers))
    sql = f"SELECT {names} FROM messages WHERE id IN ({marks}) ORDER BY id"  # noqa: S608
    return list(reader.rows(sql, numbers)) if numbers else []
