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

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import orjson

from hermes_achievements.classification.outcomes import classify_outcome, parse_json
from hermes_achievements.classification.shell_commands import BACKGROUND_LABEL, command_labels
from hermes_achievements.classification.tool_kinds import (
    ACTION_OPERATIONS,
    DELEGATE,
    FILE_OPERATIONS,
    SHELL,
    file_labels,
    operation_of,
)
from hermes_achievements.scan.history import ScannedSession, SessionKind
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.scan.history import ScannedMessage
    from hermes_core.json_values import JsonObject

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

FINGERPRINT_BYTES: Final = 200  # bytes of a message in its fingerprint
MAX_COPY_SECONDS: Final = 10.0
MAX_SUMMARY_MESSAGES: Final = 3  # summary messages before the first copy
EARLIEST_PLAUSIBLE: Final = 1_420_070_400.0  # 2015
LATEST_PLAUSIBLE: Final = 4_102_444_800.0  # 2100
MAX_TOOL_NAME_CHARACTERS: Final = 64
BY_TIME: Final = itemgetter(TIME_FIELD, ID_FIELD)


def make_fact(row: ScannedMessage, tool: str | None = None) -> Fact | None:
    """The fact of a row, or None; *tool* is the called tool of a result without a name."""
    role = row.role
    if role == "tool":
        name = clean_name(_text(row.tool_name)) or tool or ""
        code = classify_outcome(row.content, operation_of(name))
        reference = reference_of(row.call_id)
        return [
            row.id,
            row.at,
            RESULT_ROLE,
            _fingerprint(row, reference + 2),
            name,
            reference,
            code,
        ]
    if role == "assistant":
        return [row.id, row.at, ASSISTANT_ROLE, _fingerprint(row, 1), calls_of(row.tool_calls)]
    if role == "user" and not row.is_observed:
        return [row.id, row.at, USER_ROLE, _fingerprint(row, 0), row.length]
    return None


def reference_of(call_id: Any) -> int:
    """A number that connects a result with its call; 0 without a call ID."""
    return crc32(call_id.encode(errors="replace")) if isinstance(call_id, str) and call_id else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=4096)
def clean_name(name: str) -> str:
    """A name of limited length that is valid UTF-8."""
    short = name[:MAX_TOOL_NAME_CHARACTERS]
    return short if short.isascii() else short.encode(errors="replace").decode()


def _fingerprint(row: ScannedMessage, start: int) -> int:
    """A checksum that is equal for copies of a message."""
    if row.tool_calls:
        start = crc32(row.tool_calls[:FINGERPRINT_BYTES], start)
    return crc32(row.content[:FINGERPRINT_BYTES], start) if row.content else start


def calls_of(stored: bytes | None) -> list[list[Any]]:
    """The tool calls of a message: name, reference and details."""
    if not stored:
        return []
    result = parse_json(stored)
    if not isinstance(result, list):
        return []
    return [call for item in result if (call := _call(item))]


def _call(item: Any) -> list[Any] | None:
    if not isinstance(item, dict):
        return None
    function = item.get("function")
    if not isinstance(function, dict):
        function = item
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    tool = clean_name(name)
    call_id = item.get("id") or item.get("call_id")
    reference = reference_of(call_id)
    details = _call_details(operation_of(tool), function.get("arguments"))
    return [tool, reference, details] if details else [tool, reference]


def _call_details(operation: str, stored: Any) -> list[str]:
    """The details of the arguments that metrics use."""
    if operation == SHELL:
        arguments = _arguments(stored)
        command = arguments.get("command") or arguments.get("cmd") or ""
        details = list(command_labels(command)) if isinstance(command, str) else []
        if arguments.get("background") is True and BACKGROUND_LABEL not in details:
            details.append(BACKGROUND_LABEL)
        return details
    if operation in FILE_OPERATIONS:
        return file_labels(_arguments(stored))
    if operation in ACTION_OPERATIONS:
        action = _arguments(stored).get("action")
        return [clean_name(action.lower())] if isinstance(action, str) else []
    if operation == DELEGATE:
        tasks = _arguments(stored).get("tasks")
        return [str(len(tasks))] if isinstance(tasks, list) and tasks else ["1"]
    return []


def _arguments(stored: Any) -> JsonObject:
    result = parse_json(stored) if isinstance(stored, (str, bytes)) else stored
    return result if isinstance(result, dict) else {}


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
        return sorted([*self.facts, *self.deleted] if self.deleted else self.facts, key=BY_TIME)


class FactReader:
    """Collects the facts of a session from a stream of rows."""

    def __init__(self, session: ScannedSession) -> None:
        self.session = session
        self.facts: list[Fact] = []
        self.rows = 0
        self.last_id = 0
        self.has_copy_marks = False
        self._unnamed_results: list[ScannedMessage] = []

    @classmethod
    def resume(cls, session: ScannedSession, recorded: RecordedFacts) -> FactReader:
        """A reader that continues after the last row of *recorded*."""
        reader = cls(session)
        reader.facts, reader.rows, reader.last_id = recorded.facts, recorded.rows, recorded.last_id
        return reader

    def add_row(self, row: ScannedMessage) -> None:
        """Add the fact of a row; copies are skipped."""
        self.rows += 1
        self.last_id = max(self.last_id, row.id)
        if row.is_copy:
            self.has_copy_marks = True
        elif row.role == "tool" and not row.tool_name:
            self._unnamed_results.append(row)  # the call may follow later
        else:
            fact = make_fact(row)
            if fact is not None:
                self.facts.append(fact)

    def _called_tools(self) -> dict[int, str]:
        """The called tools by reference."""
        return {
            call[1]: call[0]
            for fact in self.facts
            if fact[ROLE_FIELD] == ASSISTANT_ROLE
            for call in fact[CALLS_FIELD]
        }

    def finish(self) -> list[Fact]:
        """All facts in row order, with plausible timestamps."""
        if self._unnamed_results:
            called_tools = self._called_tools()
            results = [
                make_fact(row, called_tools.get(reference_of(row.call_id)))
                for row in self._unnamed_results
            ]
            self.facts += [fact for fact in results if fact is not None]
            self._unnamed_results = []
        self.facts.sort(key=itemgetter(ID_FIELD))
        _fix_timestamps(self.facts, self.session.started_at)
        return self.facts


def _fix_timestamps(facts: list[Fact], started_at: float) -> None:
    """Replace implausible timestamps with that of the previous message."""
    last = started_at if is_plausible(started_at) else None
    if last is None:
        last = next(
            (fact[TIME_FIELD] for fact in facts if is_plausible(fact[TIME_FIELD])),
            EARLIEST_PLAUSIBLE,
        )
    for fact in facts:
        at = fact[TIME_FIELD]
        if type(at) is float and EARLIEST_PLAUSIBLE <= at < LATEST_PLAUSIBLE:
            last = at
        else:
            fact[TIME_FIELD] = float(at) if is_plausible(at) else last


def is_plausible(at: Any) -> bool:
    """Whether *at* can be the time of a message."""
    return isinstance(at, int | float) and EARLIEST_PLAUSIBLE <= at < LATEST_PLAUSIBLE


def read_facts(
    session: ScannedSession, rows: Sequence[ScannedMessage], parent_fingerprints: Sequence[int]
) -> RecordedFacts:
    """The facts of a session from its rows, without copied messages."""
    reader = FactReader(session)
    for row in rows:
        reader.add_row(row)
    return recorded_facts_from(reader, parent_fingerprints)


def recorded_facts_from(reader: FactReader, parent_fingerprints: Sequence[int]) -> RecordedFacts:
    """The facts of a reader, without messages copied from the parent session."""
    facts = reader.finish()
    session = reader.session
    if session.kind in (SessionKind.BRANCH, SessionKind.CONTINUATION) and not reader.has_copy_marks:
        facts = without_copies(session, facts, parent_fingerprints)
    return RecordedFacts(session, facts, [], reader.last_id, reader.rows)


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
