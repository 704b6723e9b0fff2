"""Rows that repeat a message: a compaction repeats the messages that it keeps, a branch all.

A compaction stores the kept messages again after its summary, because models, and hermes-agent,
read the rows of a context in the order of their IDs. Everywhere else a message of a conversation
exists once: its first row, in the state of its last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.messages.rows import SUMMARY, MessageRow, decode_json, tool_call_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_state.engine.transaction import Reader

NO_ORIGIN = 0  # origin of a generated message: a summary
UNKNOWN_ORIGIN = -1  # of a copy whose first row does not exist in this file

HAS_COPIES = "SELECT 1 FROM hermes_copy LIMIT 1"
COPIES_IN = """
    SELECT m.id, c.origin_id, m.active, m.compacted,
        EXISTS (SELECT 1 FROM messages o WHERE o.id = c.origin_id AND o.session_id = m.session_id)
    FROM messages m JOIN hermes_copy c ON c.message_id = m.id
    WHERE m.session_id = ? ORDER BY m.id
"""
CALLS_IN = "SELECT id, tool_calls FROM messages WHERE session_id = ? AND tool_calls IS NOT NULL"
COUNT_IN = "SELECT count(*) FROM messages WHERE session_id = ?"


class RowState(NamedTuple):
    """The state of a message, which is that of its last row."""

    last_id: int
    active: int | None
    compacted: int | None


class RepeatedRows(NamedTuple):
    """The rows of one conversation that are not messages of their own."""

    hidden: dict[int, int]  # later rows of a message, each with its first row
    states: dict[int, RowState]  # of repeated messages, by their first row
    summaries: frozenset[int]
    inherited: frozenset[int]  # first rows of messages of another conversation

    def shown(self, rows: Iterable[MessageRow], *, with_undone: bool) -> Iterator[MessageRow]:
        """The messages among *rows*, each once and in its current state."""
        for row in rows:
            if row.id in self.hidden:
                continue
            message = row
            if (state := self.states.get(row.id)) is not None:
                message = row._replace(active=state.active, compacted=state.compacted)
            if row.id in self.summaries and row.role == "user":
                message = row._replace(finish_reason=SUMMARY)
            if with_undone or not message.is_undone:
                yield message

    def is_undone(self, message_id: int) -> bool:
        """Whether a repeated message was undone."""
        state = self.states.get(message_id)
        return state is not None and state.active == 0 and not state.compacted

    def last_row(self, message_id: int) -> int:
        """The row of a message that is in the model's context, if one is."""
        state = self.states.get(message_id)
        return message_id if state is None else state.last_id

    def first_row(self, row_id: int) -> int:
        """The row under which a message is shown."""
        return self.hidden.get(row_id, row_id)


NOTHING = RepeatedRows({}, {}, frozenset(), frozenset())


def has_copies(reader: Reader) -> bool:
    """Whether the history has a compaction or a branch."""
    return "hermes_copy" in reader.columns.tables and reader.value(HAS_COPIES) is not None


def repeated_rows(reader: Reader, session_id: str) -> RepeatedRows:
    """The rows of a session that repeat messages."""
    if not has_copies(reader):
        return NOTHING
    hidden: dict[int, int] = {}
    states: dict[int, RowState] = {}
    summaries: set[int] = set()
    inherited: set[int] = set()
    first_of: dict[int, int] = {}  # by origin
    for row_id, origin, active, compacted, is_own in reader.rows(COPIES_IN, (session_id,)):
        if origin == NO_ORIGIN:
            summaries.add(row_id)
            continue
        if is_own:
            first_of.setdefault(origin, origin)
        if origin < 0 or origin not in first_of:  # of another conversation, perhaps unknown here
            inherited.add(row_id)
            if origin > 0:
                first_of[origin] = row_id
            continue
        hidden[row_id] = first_of[origin]
        states[first_of[origin]] = RowState(row_id, active, compacted)
    return RepeatedRows(hidden, states, frozenset(summaries), frozenset(inherited))


class MessageCounts(NamedTuple):
    """The messages and tool calls of a conversation, and those that are not of another one."""

    messages: int
    calls: int
    own_messages: int
    own_calls: int


def count(reader: Reader, session_id: str) -> MessageCounts:
    """Count the messages of a session, each once; summaries do not count."""
    repeated = repeated_rows(reader, session_id)
    generated = repeated.hidden.keys() | repeated.summaries
    messages = int(reader.value(COUNT_IN, (session_id,))) - len(generated)
    calls = {
        row_id: tool_call_count(decode_json(text))
        for row_id, text in reader.rows(CALLS_IN, (session_id,))
        if row_id not in generated
    }
    inherited = sum(number for row_id, number in calls.items() if row_id in repeated.inherited)
    total = sum(calls.values())
    return MessageCounts(messages, total, messages - len(repeated.inherited), total - inherited)
