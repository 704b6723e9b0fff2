"""Rows of a history as statistics read them: plain data that store and readers share."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a session is; only some are conversations somebody had."""

    CONVERSATION = "conversation"
    BRANCH = "branch"
    CONTINUATION = "continuation"
    SUBAGENT = "subagent"
    SCHEDULED = "scheduled"

    @property
    def is_conversation(self) -> bool:
        """Whether a person began it; a continuation goes on with one already counted."""
        return self in (Kind.CONVERSATION, Kind.BRANCH)

    @property
    def is_spoken_to(self) -> bool:
        """Whether what its user says was said by a person."""
        return self in (Kind.CONVERSATION, Kind.BRANCH, Kind.CONTINUATION)


class SessionRow(NamedTuple):
    """What is known about a session besides its messages."""

    id: str
    kind: str = Kind.CONVERSATION
    source: str = ""
    model: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    end_reason: str = ""
    is_titled: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    parent_id: str | None = None


class MessageRow(NamedTuple):
    """One stored message: the columns that matter.

    `content` is whole for tool results and at least the first 200 characters of
    everything else; `length` is the number of characters a user typed.
    """

    id: int
    role: str
    at: float
    content: bytes | None = None
    length: int = 0
    tool_calls: bytes | None = None
    tool_name: str | None = None
    call_id: str | None = None
    is_copy: bool = False
    is_observed: bool = False


class Mark(NamedTuple):
    """How far a history has been followed.

    The newest message and the newest change of anything else. `history` is the name the
    history was given when it was first opened; where it has none, `witnesses`, a few
    messages, are what the same history is known by.
    """

    message: int = 0
    change: int = 0
    witnesses: tuple[tuple[int, int], ...] = ()
    history: str = ""


class Changed(NamedTuple):
    """A session that was written to; `is_longer` when rows were added and nothing else."""

    session_id: str
    is_longer: bool


class LedgerEntry(NamedTuple):
    """What the ledger keeps of one session."""

    session_id: str
    first_at: float
    days: tuple[str, ...]
    book: bytes
    contribution: bytes
