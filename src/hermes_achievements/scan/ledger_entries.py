"""Computes the ledger entry of a session, recorded facts and contribution, from its rows."""

from __future__ import annotations

import functools
import logging
from functools import lru_cache
from itertools import chain
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from hermes_achievements.classification import tool_kinds
from hermes_achievements.classification.outcomes import classify_outcome, parse_json
from hermes_achievements.classification.shell_commands import BACKGROUND_LABEL, command_labels
from hermes_achievements.metrics.facts import (
    ASSISTANT_ROLE,
    BY_TIME,
    CALLS_FIELD,
    FINGERPRINT_FIELD,
    ID_FIELD,
    RESULT_ROLE,
    ROLE_FIELD,
    TIME_FIELD,
    USER_ROLE,
    RecordedFacts,
    carry_over_deleted,
    without_copies,
)
from hermes_achievements.metrics.tally import compute_contribution
from hermes_achievements.scan.history import LedgerEntry, SessionKind
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.facts import Fact
    from hermes_achievements.metrics.tally import Contribution
    from hermes_achievements.scan.history import History, MessageColumns, ScannedSession

FINGERPRINT_BYTES: Final = 200  # bytes of a message in its fingerprint
EARLIEST_PLAUSIBLE: Final = 1_420_070_400.0  # 2015
LATEST_PLAUSIBLE: Final = 4_102_444_800.0  # 2100
MAX_TOOL_NAME_CHARACTERS: Final = 64
DETAILED_OPERATIONS: Final = (
    tool_kinds.FILE_OPERATIONS
    | tool_kinds.ACTION_OPERATIONS
    | {tool_kinds.SHELL, tool_kinds.DELEGATE}
)


def _result_fact(row: MessageColumns, tool_name: object) -> Fact:
    row_id, _, at, content, _, tool_calls, _, call_id, _, _ = row
    tool, operation = _named_tool(tool_name if isinstance(tool_name, str) else "")
    reference = reference_of(call_id)
    fingerprint = _fingerprint(content, tool_calls, reference + 2)
    outcome = classify_outcome(content, operation)
    return [row_id, at, RESULT_ROLE, fingerprint, tool, reference, outcome]


def fingerprint_of(row: MessageColumns) -> int | None:
    """The fingerprint of a row's fact; None for a row without a fact."""
    _, role, _, content, _, tool_calls, _, call_id, _, is_observed = row
    if role == "tool":
        return _fingerprint(content, tool_calls, reference_of(call_id) + 2)
    if role == "assistant":
        return _fingerprint(content, tool_calls, 1)
    return _fingerprint(content, tool_calls, 0) if role == "user" and not is_observed else None


def _fingerprint(content: bytes | None, tool_calls: bytes | None, start: int) -> int:
    """A checksum that is equal for copies of a message."""
    if tool_calls:
        start = crc32(tool_calls[:FINGERPRINT_BYTES], start)
    return crc32(content[:FINGERPRINT_BYTES], start) if content else start


def reference_of(call_id: Any) -> int:
    """A number that connects a result with its call; 0 without a call ID."""
    try:
        return crc32(call_id.encode())
    except AttributeError:  # not a text
        return 0
    except UnicodeEncodeError:
        return crc32(call_id.encode(errors="replace"))


@lru_cache(maxsize=4096)
def _named_tool(name: str) -> tuple[str, str]:
    """The cleaned name of a tool, and its operation."""
    tool = clean_name(name)
    return tool, tool_kinds.operation_of(tool)


def clean_name(name: str) -> str:
    """A name of limited length that is valid UTF-8."""
    short = name[:MAX_TOOL_NAME_CHARACTERS]
    return short if short.isascii() else short.encode(errors="replace").decode()


def calls_of(stored: bytes) -> list[list[Any]]:
    """The tool calls of a message: name, reference and details."""
    result = parse_json(stored)
    if not isinstance(result, list):
        return []
    calls: list[list[Any]] = []
    for item in result:
        if not isinstance(item, dict):
            continue
        function = item.get("function")
        if not isinstance(function, dict):
            function = item
        name = function.get("name")
        if not isinstance(name, str) or not name:
            continue
        tool, operation = _named_tool(name)
        call: list[Any] = [tool, reference_of(item.get("id") or item.get("call_id"))]
        if operation in DETAILED_OPERATIONS and (
            details := _call_details(operation, function.get("arguments"))
        ):
            call.append(details)
        calls.append(call)
    return calls


def _call_details(operation: str, stored: Any) -> list[str]:
    """The details of the arguments that metrics use."""
    arguments = parse_json(stored) if isinstance(stored, (str, bytes)) else stored
    if not isinstance(arguments, dict):
        arguments = {}
    if operation == tool_kinds.SHELL:
        command = arguments.get("command") or arguments.get("cmd") or ""
        details = list(command_labels(command)) if isinstance(command, str) else []
        if arguments.get("background") is True and BACKGROUND_LABEL not in details:
            details.append(BACKGROUND_LABEL)
        return details
    if operation in tool_kinds.FILE_OPERATIONS:
        return tool_kinds.file_labels(arguments)
    if operation in tool_kinds.ACTION_OPERATIONS:
        action = arguments.get("action")
        return [clean_name(action.lower())] if isinstance(action, str) else []
    tasks = arguments.get("tasks")
    return [str(len(tasks))] if isinstance(tasks, list) and tasks else ["1"]


class FactReader:
    """Collects the facts of a session from its rows."""

    def __init__(self, session: ScannedSession) -> None:
        self.session = session
        self.facts: list[Fact] = []
        self.rows = 0
        self.last_id = 0
        self.has_copy_marks = False
        self._unnamed_results: list[MessageColumns] = []

    @classmethod
    def of(cls, session: ScannedSession, rows: Iterable[MessageColumns]) -> FactReader:
        """A reader that has read *rows*."""
        reader = cls(session)
        reader.add_rows(rows)
        return reader

    @classmethod
    def resume(
        cls, session: ScannedSession, recorded: RecordedFacts, rows: Iterable[MessageColumns]
    ) -> FactReader:
        """A reader that has read *rows* after the last row of *recorded*."""
        reader = cls(session)
        reader.facts, reader.rows = list(recorded.facts), recorded.rows
        reader.last_id = recorded.last_id
        reader.add_rows(rows)
        return reader

    def add_rows(self, rows: Iterable[MessageColumns]) -> None:
        """Add the facts of rows; copies are skipped."""
        add, last_id, number = self.facts.append, self.last_id, 0
        for row in rows:
            row_id, role, at, content, length, calls, tool_name, _, is_copy, is_observed = row
            number += 1
            if row_id > last_id:  # noqa: PLR1730 - faster than max()
                last_id = row_id
            if is_copy:
                self.has_copy_marks = True
            elif role == "tool":
                if tool_name:
                    add(_result_fact(row, tool_name))
                else:
                    self._unnamed_results.append(row)  # the call may follow later
            elif role == "assistant":
                fingerprint = _fingerprint(content, calls, 1)
                add([row_id, at, ASSISTANT_ROLE, fingerprint, calls_of(calls) if calls else []])
            elif role == "user" and not is_observed:
                add([row_id, at, USER_ROLE, _fingerprint(content, calls, 0), length])
        self.rows += number
        self.last_id = last_id

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
            self.facts += [
                _result_fact(row, called_tools.get(reference_of(row[7]), ""))
                for row in self._unnamed_results
            ]
            self._unnamed_results = []
        self.facts.sort(key=itemgetter(ID_FIELD))
        _fix_timestamps(self.facts, self.session.started_at)
        return self.facts


def _fix_timestamps(facts: list[Fact], started_at: float) -> None:
    """Replace implausible timestamps with that of the previous message."""
    if _are_plausible(list(map(BY_TIME, facts))):
        return
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


def _are_plausible(times: list[Any]) -> bool:
    """Whether all times are plausible numbers of the type `float`; the common case."""
    return (
        set(map(type, times)) == {float}
        and min(times) >= EARLIEST_PLAUSIBLE
        and max(times) < LATEST_PLAUSIBLE
        and not isnan(sum(times))
    )


def is_plausible(at: Any) -> bool:
    """Whether *at* can be the time of a message."""
    return isinstance(at, int | float) and EARLIEST_PLAUSIBLE <= at < LATEST_PLAUSIBLE


def read_facts(
    session: ScannedSession, rows: Sequence[MessageColumns], parent_fingerprints: Sequence[int]
) -> RecordedFacts:
    """The facts of a session from its rows, without copied messages."""
    return recorded_facts_from(FactReader.of(session, rows), parent_fingerprints)


def recorded_facts_from(reader: FactReader, parent_fingerprints: Sequence[int]) -> RecordedFacts:
    """The facts of a reader, without messages copied from the parent session."""
    facts = reader.finish()
    session = reader.session
    if session.kind in (SessionKind.BRANCH, SessionKind.CONTINUATION) and not reader.has_copy_marks:
        facts = without_copies(session, facts, parent_fingerprints)
    return RecordedFacts(session, facts, [], reader.last_id, reader.rows)


log = logging.getLogger(__name__)

CHILD_KINDS = (SessionKind.BRANCH, SessionKind.CONTINUATION)


def collect_facts(
    history: History, session_id: str, before: bytes | None = None
) -> RecordedFacts | None:
    """All facts of a session: of its rows, and of rows deleted since the last scan.

    None if nothing is stored about the session.
    """
    session = history.session(session_id)
    earlier = [
        recorded
        for stored in (before, history.purged_facts(session_id))
        if (recorded := decode_facts(stored))
    ]
    if session is None:
        if not earlier:
            return None
        # Facts stored by a purge are the newest.
        recorded = RecordedFacts(earlier[-1].session, [], [], 0, 0)
    else:
        reader = history.read_rows(session_id, functools.partial(FactReader.of, session))
        parent_fingerprints: list[int] = []
        if session.kind in CHILD_KINDS and session.parent_id and not reader.has_copy_marks:
            parent_fingerprints = _parent_fingerprints(history, session.parent_id)
        recorded = recorded_facts_from(reader, parent_fingerprints)
    for item in earlier:
        carry_over_deleted(recorded, item)
    return recorded


def decode_facts(stored: bytes | None) -> RecordedFacts | None:
    """Decode stored facts; None without facts, or if they are damaged."""
    if not stored:
        return None
    try:
        return RecordedFacts.unpack(stored)
    except LedgerDamagedError as error:
        log.warning("stored facts unreadable: %s", error)
        return None


def _parent_fingerprints(history: History, parent_id: str) -> list[int]:
    result = decode_facts(history.purged_facts(parent_id))
    if result is not None:
        return [fact[FINGERPRINT_FIELD] for fact in (*result.facts, *result.deleted)]
    return history.read_rows(parent_id, _fingerprints)


def _fingerprints(rows: Iterable[MessageColumns]) -> list[int]:
    """The fingerprints of messages in the order of their IDs."""
    pairs = sorted(
        (row[0], fingerprint) for row in rows if (fingerprint := fingerprint_of(row)) is not None
    )
    return [fingerprint for _, fingerprint in pairs]


def extend_facts(history: History, session_id: str, before: bytes) -> RecordedFacts | None:
    """The facts of a session with only new rows; None if it has to be read completely."""
    session = history.session(session_id)
    recorded = decode_facts(before)
    if recorded is None or session is None or session.kind != recorded.session.kind:
        return None
    if session.kind in CHILD_KINDS or recorded.deleted:
        return None
    if history.count_rows_through(session_id, recorded.last_id) != recorded.rows:
        return None  # rows were deleted or renumbered
    resume = functools.partial(FactReader.resume, session, recorded)
    reader = history.read_rows(session_id, resume, after=recorded.last_id)
    return recorded_facts_from(reader, ())


def make_entry(recorded: RecordedFacts, calendar: Calendar) -> tuple[LedgerEntry, Contribution]:
    """The ledger entry of a session, and its contribution."""
    contribution = compute_contribution(recorded, calendar)
    first = min(map(BY_TIME, chain(recorded.facts, recorded.deleted)), default=0.0)
    entry = LedgerEntry(
        recorded.session.id, first, tuple(contribution.days), recorded.pack(), contribution.pack()
    )
    return entry, contribution


def facts_to_keep(history: History, session_id: str) -> bytes | None:
    """The facts to keep of a session that is about to be purged; None without messages."""
    recorded = collect_facts(history, session_id)
    if recorded is None or not (recorded.facts or recorded.deleted):
        return None
    return recorded.pack()
