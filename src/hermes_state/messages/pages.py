"""Paged transcripts over all rows of a conversation.

The messages of a page are selected by their sizes before they are read, so a page stays
small even if single messages are huge.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import SessionNotFoundError
from hermes_core.messages import preview
from hermes_state.engine.dialect import DIALECT
from hermes_state.messages import copies
from hermes_state.messages.rows import (
    MessageRow,
    decode_content,
    select_list,
    to_messages,
    to_utf8_text,
)
from hermes_state.repository import Repository
from hermes_state.sessions import lineage, usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_state.engine.transaction import Reader
    from hermes_state.sessions.usage import AnswerUsage

MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
NOT_UNDONE: Final = " AND (coalesce(active, 1) = 1 OR compacted = 1)"
SIZE_SQL: Final = """
    coalesce(octet_length(content), 0) + coalesce(octet_length(tool_calls), 0)
    + coalesce(octet_length(reasoning), 0)
"""
MAX_ROW_ID: Final = 2**63 - 1
MAX_PROMPTS: Final = 5000
PROMPT_CHARACTERS: Final = 120
# Structured content starts with a zero character, where SQLite ends a text: it is read completely.
PROMPTS: Final = """
    SELECT id, timestamp, CASE WHEN length(substr(content, 1, 400)) < 400 THEN content
                               ELSE substr(content, 1, 400) END
    FROM messages
    WHERE session_id = ? AND role = 'user' AND (coalesce(active, 1) = 1 OR compacted = 1)
        AND coalesce(finish_reason, '') NOT IN ('deleted', 'hook_feedback')
    ORDER BY id LIMIT ?
"""


class SizedMessage(NamedTuple):
    """A candidate for a page: message ID and size in bytes."""

    id: int
    size: int


class MessagePage(NamedTuple):
    """Messages in order, and whether there are more before and after them."""

    rows: list[MessageRow]
    has_before: bool
    has_after: bool
    usage: dict[int, AnswerUsage]  # of answers, by message ID


class TranscriptPages:
    """The messages of one conversation."""

    def __init__(self, reader: Reader, session_id: str, *, with_undone: bool) -> None:
        self._reader = reader
        self._sessions = lineage.conversation_of(reader, session_id)
        self._with_undone = with_undone
        self._repeated = [copies.repeated_rows(reader, row) for row in self._sessions]
        self._left_out = {row_id for each in self._repeated for row_id in each.hidden}
        if not with_undone:
            for each in self._repeated:
                self._left_out.update(filter(each.is_undone, each.states))

    def before(self, message_id: int, limit: int) -> list[SizedMessage]:
        """Up to *limit* messages before a message, nearest first."""
        return self._next("<", "DESC", message_id, limit)

    def after(self, message_id: int, limit: int) -> list[SizedMessage]:
        """Up to *limit* messages after a message, nearest first."""
        return self._next(">", "ASC", message_id, limit)

    def _next(self, sign: str, order: str, message_id: int, limit: int) -> list[SizedMessage]:
        where = "" if self._with_undone else NOT_UNDONE
        sql = (
            f"SELECT id, {SIZE_SQL} FROM messages"  # noqa: S608 - constant text
            f" WHERE session_id = ? AND id {sign} ?{where} ORDER BY id {order} LIMIT ?"
        )
        read = limit + len(self._left_out)
        by_session = [
            self._reader.rows(sql, (session_id, message_id, read)) for session_id in self._sessions
        ]
        merged = heapq.merge(*by_session, reverse=order == "DESC")
        shown = (row for row in merged if row[0] not in self._left_out)
        return [SizedMessage(*row) for row in itertools.islice(shown, limit)]

    def page(self, chosen: list[SizedMessage]) -> MessagePage:
        """Read consecutive messages as a page."""
        ids = sorted(message.id for message in chosen)
        if not ids:
            return MessagePage([], has_before=False, has_after=False, usage={})
        names = self._reader.prepared(select_list)
        placeholders = ", ".join("?" * len(ids))
        sql = f"SELECT {names} FROM messages WHERE id IN ({placeholders}) ORDER BY id"  # noqa: S608
        rows = to_messages(self._reader.rows(sql, ids))
        for each in self._repeated:
            rows = list(each.shown(rows, with_undone=True))
        answers = [row.id for row in rows if row.role == "assistant"]
        return MessagePage(
            rows,
            bool(self.before(ids[0], 1)),
            bool(self.after(ids[-1], 1)),
            usage.of_messages(self._reader, answers),
        )

    def around(self, message_id: int, limit: int) -> list[SizedMessage]:
        """A message with the same number of messages before and after it."""
        for each in self._repeated:
            message_id = each.first_row(message_id)
        target = self.after(message_id - 1, 1)
        if not target or target[0].id != message_id:
            raise SessionNotFoundError(f"message {message_id} is not in this conversation")
        following = self.after(message_id, limit - 1)
        preceding = self.before(message_id, max(limit // 2, limit - 1 - len(following)))
        remaining = limit - 1 - len(preceding)
        pairs = itertools.zip_longest(preceding, following[: max(remaining, 0)])
        outward = [message for pair in pairs for message in pair if message is not None]
        return _fit_around(target[0], outward)


def _fit_around(middle: SizedMessage, others: Iterable[SizedMessage]) -> list[SizedMessage]:
    """The nearest messages on both sides that fit; a side ends at the first that does not."""
    chosen, size = [middle], middle.size
    full_sides: set[bool] = set()
    for message in others:
        side = message.id > middle.id
        if side in full_sides or size + message.size > MAX_PAGE_BYTES:
            full_sides.add(side)
            continue
        chosen.append(message)
        size += message.size
    return chosen


def fit_page(messages: list[SizedMessage]) -> list[SizedMessage]:
    """The first messages that fit on a page, at least one."""
    sizes = itertools.accumulate(message.size for message in messages)
    return [
        message
        for number, (message, size) in enumerate(zip(messages, sizes, strict=True))
        if not number or size <= MAX_PAGE_BYTES
    ]


class PromptStart(NamedTuple):
    """The beginning of a user message."""

    id: int
    timestamp: float
    text: str


def prompts_of(reader: Reader, session_id: str, limit: int) -> list[PromptStart]:
    """The first user messages of a conversation, in order."""
    rows = []
    for row_id in lineage.conversation_of(reader, session_id):
        repeated = copies.repeated_rows(reader, row_id)
        left_out = repeated.hidden.keys() | repeated.summaries
        found = reader.rows(PROMPTS, (row_id, limit + len(left_out)))
        rows += [row for row in found if row[0] not in left_out and not repeated.is_undone(row[0])]
    return [
        PromptStart(
            row_id,
            timestamp,
            to_utf8_text(preview(decode_content(content), PROMPT_CHARACTERS)) or "",
        )
        for row_id, timestamp, content in sorted(rows, key=lambda row: row[0])[:limit]
    ]


class TranscriptRepository(Repository):
    """Reading a conversation in pages."""

    def prompts(self, session_id: str, limit: int = MAX_PROMPTS) -> list[PromptStart]:
        """The user messages of the complete conversation, in order, each on one line."""
        return self.engine.read(lambda reader: prompts_of(reader, session_id, limit))

    def page(
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

        The page holds the messages before or after a message ID, around it, or the last ones,
        and at most about 4 MB.
        """

        def read(reader: Reader) -> MessagePage:
            transcript = TranscriptPages(reader, session_id, with_undone=with_undone)
            if around is not None:
                return transcript.page(transcript.around(around, limit))
            if after is not None:
                return transcript.page(fit_page(transcript.after(after, limit)))
            first = MAX_ROW_ID if before is None else before
            return transcript.page(fit_page(transcript.before(first, limit)))

        return self.engine.read(read)


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
