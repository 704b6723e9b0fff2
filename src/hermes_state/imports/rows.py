"""What an import stores: units that were read, conversations, messages, token usage.

Records of other agents have identities, by which messages that are stored already are found.
"""

from __future__ import annotations

import functools
import hashlib
import re
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hermes_core.json_values import JsonValue
    from hermes_core.messages import Content, ToolCallDict
    from hermes_state.engine.transaction import Reader
    from hermes_state.engine.values import SqlValue


MAX_INHERITED_KEYS: Final = 2000  # records between a fork and the last message before it


class ConversationKind(StrEnum):
    """What a conversation is in its agent."""

    MAIN = "main"
    FORK = "fork"
    SUBAGENT = "subagent"


class ImportedUsage(NamedTuple):
    """Tokens and cost of one request to a model.

    Input tokens exclude those read from a cache; output tokens include reasoning.
    """

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None  # as the agent states it
    key: str = ""  # identity of the request, if the usage is not that of a message
    is_call: bool = True  # False for an amount that belongs to no single request
    answer: str = ""  # key of the message that the request was answered with, if that is known


class ImportedMessage(NamedTuple):
    """A message of another agent.

    *key* identifies the record within its agent: copies of it in a fork have the same.
    """

    key: str
    role: str
    content: Content
    at: float
    tool_calls: Sequence[ToolCallDict] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: ImportedUsage | None = None
    is_summary: bool = False  # a summary that replaces everything before it
    is_copy: bool = False  # repeats or sums up other messages, so that it is not counted
    may_change: bool = False  # the agent may still add to the record
    columns: Mapping[str, SqlValue] = MappingProxyType({})  # of a row of hermes-agent
    only_grows: bool = False  # of those that may change: less of it is only a part


class ImportedConversation(NamedTuple):
    """What is known of a conversation besides its messages."""

    native_id: str
    started_at: float
    kind: ConversationKind = ConversationKind.MAIN
    parent_id: str | None = None  # its native ID
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    is_archived: bool = False
    source: str | None = None  # of a conversation of hermes-agent, which keeps its own
    keeps_id: bool = False  # the native ID is its ID here, too
    columns: Mapping[str, SqlValue] = MappingProxyType({})  # of a row of hermes-agent
    end_reason: str | None = None  # of a conversation of hermes-agent
    stays_open: bool = False  # without an end in its agent, it has none here


# In the state of a unit: the number after that of its last record.
END_KEY: Final = "end"


class InheritedHistory(NamedTuple):
    """The history that a fork continues without repeating it.

    It is that of another conversation, with the records before number *end*. The keys of these
    records are the ID of the conversation and their numbers.
    """

    native_id: str
    end: int

    def latest_keys(self) -> list[str]:
        """The keys of the last records, the latest first."""
        first = max(-1, self.end - 1 - MAX_INHERITED_KEYS)
        return [f"{self.native_id}:{number}" for number in range(self.end - 1, first, -1)]


class ImportedPart(NamedTuple):
    """A part of a conversation, as read from its agent, in order."""

    conversation: ImportedConversation
    messages: Sequence[ImportedMessage] = ()
    usage: Sequence[ImportedUsage] = ()
    ended_at: float | None = None  # the agent recorded the end of the conversation
    is_last: bool = False  # nothing more is known of the conversation now
    inherits: InheritedHistory | None = None
    usage_columns: Sequence[UsageColumns] = ()  # of hermes-agent


class UsageColumns(NamedTuple):
    """Usage of a model with the columns that hermes-agent has for it, identified by *key*."""

    key: str
    columns: Mapping[str, SqlValue]


class UnitState(NamedTuple):
    """How far a unit of an agent's history was read."""

    revision: str
    position: int = 0  # the byte at which the next read begins
    state: Mapping[str, JsonValue] = MappingProxyType({})  # of the reader, at this position
    unknown: Mapping[str, int] = MappingProxyType({})  # records not understood, by kind


class StoredUnit(NamedTuple):
    """A unit, and how far it was read."""

    unit_id: str
    state: UnitState


class PartResult(NamedTuple):
    """What storing a part changed."""

    session_id: str
    is_new: bool = False
    messages: int = 0
    copies: int = 0
    is_deleted: bool = False  # the user has deleted the conversation here
    is_taken: bool = False  # a conversation with this ID did not come from an import


class SessionOrigin(NamedTuple):
    """Where a conversation came from."""

    session_id: str
    agent: str
    native_id: str
    path: str
    imported_at: float
    last_record_at: float


LOOKUP_ROWS: Final = 200

KNOWN_ROWS = """
    SELECT h.uid, h.message_id, m.session_id FROM hermes_message h
    LEFT JOIN messages m ON m.id = h.message_id WHERE h.uid IN ({places})
"""
IS_USABLE = """
    SELECT NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = s.id)
    FROM sessions s WHERE s.id = ?
"""


class KnownMessage(NamedTuple):
    """A message that is stored already, or was: that of a purged conversation has none."""

    row_id: int
    session_id: str | None


# A conversation that was handed to another agent: its records name the messages they were made of.
OWN_KEY: Final = re.compile(r"hermes:([0-9a-f]{32})")


def own_key(uid: str) -> str:
    """The key of a record that Hermes has written for another agent; empty for no identity."""
    key = f"hermes:{uid}"
    return key if OWN_KEY.fullmatch(key) else ""


def is_own_key(key: str) -> bool:
    """Whether Hermes has written a record."""
    return OWN_KEY.fullmatch(key) is not None


def identity(agent: str, key: str) -> bytes:
    """The identity of a record of another agent, as messages of the history have it."""
    return identities(agent, [key])[0]


def identities(agent: str, keys: Iterable[str]) -> list[bytes]:
    """The identities of several records; one that Hermes has written has that of its message."""
    prefix, digest_of = f"{agent}:".encode("utf-8", "surrogatepass"), hashlib.blake2b
    return [
        bytes.fromhex(own[1])
        if (own := OWN_KEY.fullmatch(key))
        else digest_of(prefix + key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for key in keys
    ]


def session_id_of(agent: str, native_id: str) -> str:
    """The ID that a conversation of another agent has here."""
    return f"{agent}-{native_id}"


@functools.cache
def _known_rows_sql(count: int) -> str:
    return KNOWN_ROWS.format(places=", ".join("?" * count))


def known_rows(tx: Reader, keys: Sequence[bytes]) -> dict[bytes, KnownMessage]:
    """The stored messages among those with these identities."""
    found: dict[bytes, KnownMessage] = {}
    for start in range(0, len(keys), LOOKUP_ROWS):
        some = keys[start : start + LOOKUP_ROWS]
        for uid, row_id, session_id in tx.rows(_known_rows_sql(len(some)), some):
            found[bytes(uid)] = KnownMessage(row_id, session_id)
    return found
