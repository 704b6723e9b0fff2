"""A conversation read in pages: all its rows as one, however long it is.

A page is chosen by the sizes of its messages before any of them is read, so a few huge
ones make a page short instead of making an answer huge.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import SessionNotFoundError
from hermes_state.messages.rows import as_message, select_list
from hermes_state.part import StorePart
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_state.engine.transaction import Reader

PAGE_BYTES: Final = 4 * 1024 * 1024
NOT_UNDONE: Final = " AND (coalesce(active, 1) = 1 OR compacted = 1)"
SIZE: Final = """
    coalesce(octet_length(content), 0) + coalesce(octet_length(tool_calls), 0)
    + coalesce(octet_length(reasoning), 0)
"""
BEYOND: Final = 2**63 - 1


class Sized(NamedTuple):
    """A message that may go on a page, and how many bytes it takes."""

    id: int
    size: int


class MessagePage(NamedTuple):
    """Messages in order, and whether there are more on either side."""

    rows: list[dict[str, Any]]
    has_before: bool
    has_after: bool


class TranscriptPages:
    """The messages of one conversation."""

    def __init__(self, reader: Reader, session_id: str, *, with_undone: bool) -> None:
        self._reader = reader
        self._sessions = lineage.conversation_of(reader, session_id)
        self._where = "" if with_undone else NOT_UNDONE

    def before(self, message_id: int, limit: int) -> list[Sized]:
        """Up to *limit* messages before one, the nearest first."""
        return self._next("<", "DESC", message_id, limit)

    def after(self, message_id: int, limit: int) -> list[Sized]:
        """Up to *limit* messages behind one, the nearest first."""
        return self._next(">", "ASC", message_id, limit)

    def _next(self, sign: str, order: str, message_id: int, limit: int) -> list[Sized]:
        sql = (
            f"SELECT id, {SIZE} FROM messages"  # noqa: S608 - our own words
            f" WHERE session_id = ? AND id {sign} ?{self._where} ORDER BY id {order} LIMIT ?"
        )
        found = [self._reader.rows(sql, (one, message_id, limit)) for one in self._sessions]
        merged = heapq.merge(*found, reverse=order == "DESC")
        return [Sized(*row) for row in itertools.islice(merged, limit)]

    def page(self, chosen: list[Sized]) -> MessagePage:
        """These messages, which follow each other, as a page."""
        ids = sorted(one.id for one in chosen)
        if not ids:
            return MessagePage([], has_before=False, has_after=False)
        names = self._reader.prepared(select_list)
        marks = ", ".join("?" * len(ids))
        sql = f"SELECT {names} FROM messages WHERE id IN ({marks}) ORDER BY id"  # noqa: S608
        rows = [as_message(row) for row in self._reader.dicts(sql, ids)]
        return MessagePage(rows, bool(self.before(ids[0], 1)), bool(self.after(ids[-1], 1)))

    def around(self, message_id: int, limit: int) -> list[Sized]:
        """A message in the middle, with as many before it as behind it."""
        here = self.after(message_id - 1, 1)
        if not here or here[0].id != message_id:
            raise SessionNotFoundError(f"message {message_id} is not in this conversation")
        behind = self.after(message_id, limit - 1)
        ahead = self.before(message_id, max(limit // 2, limit - 1 - len(behind)))
        left = limit - 1 - len(ahead)
        pairs = itertools.zip_longest(ahead, behind[: max(left, 0)])
        outward = [one for pair in pairs for one in pair if one is not None]
        return _outward(here[0], outward)


def _outward(middle: Sized, others: Iterable[Sized]) -> list[Sized]:
    """As many of the nearest on both sides as fit; each side ends where one does not."""
    found, size = [middle], middle.size
    full: set[bool] = set()
    for one in others:
        side = one.id > middle.id
        if side in full or size + one.size > PAGE_BYTES:
            full.add(side)
            continue
        found.append(one)
        size += one.size
    return found


def fitting(found: list[Sized]) -> list[Sized]:
    """The first of these that fit on a page; one always does."""
    sizes = itertools.accumulate(one.size for one in found)
    return [
        one
        for number, (one, size) in enumerate(zip(found, sizes, strict=True))
        if not number or size <= PAGE_BYTES
    ]


class TranscriptPart(StorePart):
    """Reading a conversation in pages."""

    def transcript_page(
        self,
        session_id: str,
        limit: int = 100,
        *,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        with_undone: bool = True,
    ) -> MessagePage:
        """Messages of the complete conversation that a session belongs to, in order.

        Those before or after a message ID, around one, or the last ones. A page holds at
        most about 4 MB.
        """

        def read(reader: Reader) -> MessagePage:
            transcript = TranscriptPages(reader, session_id, with_undone=with_undone)
            if around is not None:
                return transcript.page(transcript.around(around, limit))
            if after is not None:
                return transcript.page(fitting(transcript.after(after, limit)))
            first = BEYOND if before is None else before
            return transcript.page(fitting(transcript.before(first, limit)))

        return self.engine.read(read)
