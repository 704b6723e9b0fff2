"""Rows of a history for statistics: plain data shared by the store and the scanners."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple
from zlib import crc32


class SessionKind(StrEnum):
    """The kind of a session."""

    CONVERSATION = "conversation"
    BRANCH = "branch"
    CONTINUATION = "continuation"
    SUBAGENT = "subagent"
    SCHEDULED = "scheduled"

    @property
    def is_conversation(self) -> bool:
        """Whether it counts as a conversation; a continuation is already counted."""
        return self in (SessionKind.CONVERSATION, SessionKind.BRANCH)

    @property
    def has_human_user(self) -> bool:
        """Whether its user messages can be of a person; see `ScannedSession.has_human_user`."""
        return self in (SessionKind.CONVERSATION, SessionKind.BRANCH, SessionKind.CONTINUATION)


# Sources of sessions that a schedule started, and that another program sent messages to.
SCHEDULED_SOURCES: Final = frozenset({"cron", "cronjob", "schedule"})
PROGRAM_SOURCES: Final = frozenset({"webhook"})


class ScannedSession(NamedTuple):
    """A session without its messages."""

    id: str
    kind: str = SessionKind.CONVERSATION
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
    project: str = ""  # a digest of the folder it worked in

    @property
    def has_human_user(self) -> bool:
        """Whether its user messages were written by a person.

        A continuation of a scheduled run repeats and continues the words of the schedule. A branch
        of one is made by a person.
        """
        kind = SessionKind(self.kind)
        if self.source in PROGRAM_SOURCES:
            return False
        is_scheduled = kind is SessionKind.CONTINUATION and self.source in SCHEDULED_SOURCES
        return kind.has_human_user and not is_scheduled


# Sources of conversations that were imported from other agents.
AGENT_SOURCES: Final = frozenset(
    {"claude-code", "codex", "gemini", "opencode", "pi", "openclaw", "copilot", "qwen", "aider",
     "llm", "goose", "claude-ai", "chatgpt", "open-webui"}
)  # fmt: skip


def project_of(folder: str | None) -> str:
    """The digest of a folder; empty without one."""
    return f"{crc32(folder.encode('utf-8', 'replace')):x}" if folder else ""


class ScannedMessage(NamedTuple):
    """The columns of a message that statistics need.

    `content` is complete for tool results and has at least the first 200 characters of
    other messages; `length` is the number of characters of a user message.
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
    is_observed: bool = False  # or else not written by a person


# A `ScannedMessage` as a plain tuple, which is made faster.
MessageColumns = tuple[
    int, str, float, bytes | None, int, bytes | None, str | None, str | None, bool, bool
]


class HistoryPosition(NamedTuple):
    """A position in a history: its latest message and its latest other change.

    `history` is the ID that the history received when Hermes first opened it; without an
    ID, `witnesses`, checksums of a few messages, identify the history.
    """

    message: int = 0
    change: int = 0
    witnesses: tuple[tuple[int, int], ...] = ()
    history: str = ""

    def has_same_messages(self, other: HistoryPosition) -> bool:
        """Whether both differ in changes at most, whose number may grow without any."""
        return self._replace(change=0) == other._replace(change=0)


class ChangedSession(NamedTuple):
    """A changed session; `is_longer` means that only rows were added."""

    session_id: str
    is_longer: bool


class LedgerEntry(NamedTuple):
    """The ledger's entry of a session."""

    session_id: str
    first_at: float
    days: tuple[str, ...]
    facts: bytes
    contribution: bytes
