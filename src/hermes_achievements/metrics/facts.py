"""Facts: the countable content of a message, in about 90 bytes and without its text.

A fact is a short list, the fastest format for JSON:

    [id, at, "u", fingerprint, characters]                a user message
    [id, at, "a", fingerprint, calls]                     an assistant message; a call is
                                                          [tool, reference, details]
    [id, at, "t", fingerprint, tool, reference, outcome]  a tool result

The fingerprint identifies a message that was stored under another ID. The details of a call
depend on its tool: programs of a shell command, `extension:hash` of files, an action, or a
number of tasks.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import orjson

from hermes_achievements.scan.history import ScannedSession, SessionKind
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Sequence

Fact = list[Any]

# Incremented when the facts of a message change: a full scan is needed.
FACT_RULES: Final = 2

ID_FIELD: Final = 0
TIME_FIELD: Final = 1
ROLE_FIELD: Final = 2
FINGERPRINT_FIELD: Final = 3
LENGTH_FIELD: Final = 4
CALLS_FIELD: Final = 4
TOOL_FIELD: Final = 4
REFERENCE_FIELD: Final = 5
OUTCOME_FIELD: Final = 6

USER_ROLE: Final = "u"
ASSISTANT_ROLE: Final = "a"
RESULT_ROLE: Final = "t"

MAX_COPY_SECONDS: Final = 10.0
MAX_SUMMARY_MESSAGES: Final = 3  # summary messages before the first copy
BY_TIME: Final = itemgetter(TIME_FIELD)
BY_TIME_AND_ID: Final = itemgetter(TIME_FIELD, ID_FIELD)


class RecordedFacts:
    """All facts of a session: of its messages, and of its deleted messages."""

    __slots__ = ("deleted", "facts", "last_id", "rows", "session")

    def __init__(
        self,
        session: ScannedSession,
        facts: list[Fact],
        deleted: list[Fact],
        last_id: int,
        rows: int,
    ) -> None:
        self.session = session
        self.facts = facts
        self.deleted = deleted
        self.last_id = last_id
        self.rows = rows  # number of rows up to last_id, with or without a fact

    def pack(self) -> bytes:
        """Serialize for the ledger."""
        parts = [tuple(self.session), self.facts, self.deleted, self.last_id, self.rows]
        return orjson.dumps(parts)

    @classmethod
    def unpack(cls, stored: bytes) -> RecordedFacts:
        """Deserialize."""
        try:
            session, facts, deleted, last_id, rows = orjson.loads(stored)
            return cls(ScannedSession(*session), facts, deleted, last_id, rows)
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"facts cannot be read: {error}") from error

    def all_facts(self) -> list[Fact]:
        """All facts in chronological order."""
        if self.deleted:
            return sorted([*self.facts, *self.deleted], key=BY_TIME_AND_ID)
        return sorted(self.facts, key=BY_TIME)  # they are in the order of their IDs


def without_copies(
    session: ScannedSession, facts: list[Fact], parent_fingerprints: Sequence[int]
) -> list[Fact]:
    """Remove the messages that were copied from the parent session.

    Programs that do not mark copies write them in the first seconds of the new session or
    with their original time, in one run in the order of the parent, after at most a summary.
    """
    until = session.started_at + MAX_COPY_SECONDS
    position = 0
    copied: list[int] = []
    for number, fact in enumerate(facts):
        try:
            index = (
                parent_fingerprints.index(fact[FINGERPRINT_FIELD], position)
                if fact[TIME_FIELD] <= until
                else -1
            )
        except ValueError:
            index = -1
        if index >= 0:
            position = index + 1
            copied.append(number)
        elif copied or number >= MAX_SUMMARY_MESSAGES or session.kind != SessionKind.CONTINUATION:
            break
    left_out = frozenset(copied)
    return [fact for number, fact in enumerate(facts) if number not in left_out]


def carry_over_deleted(recorded: RecordedFacts, before: RecordedFacts) -> None:
    """Carry over the facts of deleted messages, which still count.

    A message that was stored again under another ID is counted once.
    """
    current = [*recorded.facts, *recorded.deleted]
    present = {fact[ID_FIELD] for fact in current}
    unmatched: dict[int, int] = {}
    for fact in current:
        unmatched[fact[FINGERPRINT_FIELD]] = unmatched.get(fact[FINGERPRINT_FIELD], 0) + 1
    earlier = [*before.facts, *before.deleted]
    for fact in earlier:  # messages with an unchanged ID match themselves
        if fact[ID_FIELD] in present and unmatched.get(fact[FINGERPRINT_FIELD], 0):
            unmatched[fact[FINGERPRINT_FIELD]] -= 1
    for fact in earlier:
        if fact[ID_FIELD] in present:
            continue
        if unmatched.get(fact[FINGERPRINT_FIELD], 0):
            unmatched[fact[FINGERPRINT_FIELD]] -= 1
        else:
            recorded.deleted.append(fact)
