"""A session as the metrics read it: messages, tool calls and results, in order."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.classification.outcomes import OUTCOME_OK, is_failure
from hermes_achievements.classification.shell_commands import (
    ANSWER_PROGRAMS,
    BACKGROUND_LABEL,
    UNKNOWN_OUTCOME_MARK,
    plain_label,
)
from hermes_achievements.classification.tool_kinds import EDIT, SHELL, WRITE, operation_of
from hermes_achievements.metrics.facts import (
    ASSISTANT_ROLE,
    CALLS_FIELD,
    OUTCOME_FIELD,
    REFERENCE_FIELD,
    ROLE_FIELD,
    TIME_FIELD,
    TOOL_FIELD,
    USER_ROLE,
    Fact,
    RecordedFacts,
)
from hermes_achievements.scan.history import SessionKind

if TYPE_CHECKING:
    from hermes_achievements.calendar import Calendar, LocalTime

Events = list[tuple[Fact, int]]
DAY_SECONDS: Final = 86400
CHANGE_OPERATIONS: Final = (WRITE, EDIT)
NO_LABELS: Final[tuple[str, ...]] = ()


class ToolCallFact(NamedTuple):
    """A tool call: its message, and the details of its arguments."""

    fact: Fact
    tool: str
    operation: str
    details: tuple[str, ...]
    raw_labels: tuple[str, ...]  # like `details`, with exit-code marks of shell commands


class ToolResultFact(NamedTuple):
    """A tool result, with the details of its call if it is known."""

    fact: Fact
    tool: str
    operation: str
    raw_labels: tuple[str, ...]
    code: int
    has_failed: bool

    def is_known_success(self, labels: frozenset[str]) -> bool:
        """Whether one of these commands is known to have succeeded."""
        return (
            self.operation == SHELL
            and not self.has_failed
            and _can_prove_success(self.raw_labels, labels)
        )

    def is_known_failure(self, labels: frozenset[str]) -> bool:
        """Whether one of these commands is known to have failed."""
        return (
            self.operation == SHELL and self.has_failed and not labels.isdisjoint(self.raw_labels)
        )


@lru_cache(maxsize=8192)
def _can_prove_success(raw_labels: tuple[str, ...], labels: frozenset[str]) -> bool:
    """Whether exit code 0 of a command line proves that one of *labels* succeeded."""
    return any(
        plain_label(item) in labels
        for item in raw_labels
        if not item.endswith(UNKNOWN_OUTCOME_MARK)
    )


@lru_cache(maxsize=8192)
def _plain_labels(raw_labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(plain_label, raw_labels))


@lru_cache(maxsize=8192)
def _programs(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The programs of a command line, from its plain labels."""
    return tuple(word.partition(" ")[0] for word in labels if word != BACKGROUND_LABEL)


class SessionView:
    """The facts of a session, grouped for metrics."""

    __slots__ = (
        "calendar",
        "call_messages",
        "calls",
        "calls_by_operation",
        "facts",
        "failures",
        "first_changes",
        "first_on_days",
        "first_programs",
        "first_tools",
        "has_human_user",
        "is_conversation",
        "labels",
        "pauses",
        "replies",
        "results",
        "results_of_shell",
        "row",
        "user_messages",
    )

    def __init__(self, recorded: RecordedFacts, calendar: Calendar) -> None:
        self.row = recorded.session
        kind = SessionKind(self.row.kind)
        self.calendar = calendar
        self.is_conversation = kind.is_conversation
        self.has_human_user = self.row.has_human_user
        self.facts = recorded.all_facts()
        self.user_messages: list[Fact] = []
        self.replies: list[Fact] = []
        self.call_messages: list[Fact] = []
        self.calls: list[ToolCallFact] = []
        self.results: list[ToolResultFact] = []
        self.results_of_shell: list[ToolResultFact] = []
        self.calls_by_operation: dict[str, list[ToolCallFact]] = {}
        self.labels: set[str] = set()
        # The first message that used a tool, ran a program, or changed a file.
        self.first_tools: dict[str, Fact] = {}
        self.first_programs: dict[str, Fact] = {}
        self.first_changes: dict[str, Fact] = {}
        self._sort()
        self.first_on_days = self._first_on_days()
        self.failures = [result for result in self.results if result.has_failed]
        self.pauses = self._pauses()

    def _first_on_days(self) -> dict[str, tuple[Fact, LocalTime]]:
        """The first user message of each day, with its local time."""
        result: dict[str, tuple[Fact, LocalTime]] = {}
        for fact in self.user_messages:
            local = self.calendar.at(fact[TIME_FIELD])
            if local.day not in result:
                result[local.day] = fact, local
        return result

    def _pauses(self) -> list[tuple[Fact, float]]:
        """The messages after a pause of a day or more, with the seconds of the pause."""
        facts = self.facts
        if not facts or facts[-1][TIME_FIELD] - facts[0][TIME_FIELD] < DAY_SECONDS:
            return []
        return [
            (later, gap)
            for earlier, later in pairwise(facts)
            if (gap := later[TIME_FIELD] - earlier[TIME_FIELD]) >= DAY_SECONDS
        ]

    def _sort(self) -> None:
        calls_by_reference: dict[int, ToolCallFact] = {}
        for fact in self.facts:
            role = fact[ROLE_FIELD]
            if role == USER_ROLE:
                if self.has_human_user:
                    self.user_messages.append(fact)
            elif role == ASSISTANT_ROLE:
                if fact[CALLS_FIELD]:
                    self._add_calls(fact, calls_by_reference)
                else:
                    self.replies.append(fact)
            else:
                self._add_result(fact, calls_by_reference)

    def _add_calls(self, fact: Fact, calls_by_reference: dict[int, ToolCallFact]) -> None:
        self.call_messages.append(fact)
        for stored in fact[CALLS_FIELD]:
            tool = stored[0]
            operation = operation_of(tool)
            details = raw_labels = tuple(stored[2]) if len(stored) > 2 else ()
            if details:
                if operation == SHELL:
                    details = _plain_labels(raw_labels)
                self._add_details(fact, operation, details)
            # Not by the constructor, which takes twice as long.
            call = tuple.__new__(ToolCallFact, (fact, tool, operation, details, raw_labels))
            self.calls.append(call)
            self.first_tools.setdefault(tool, fact)
            if operation in self.calls_by_operation:
                self.calls_by_operation[operation].append(call)
            else:
                self.calls_by_operation[operation] = [call]
            if stored[1]:
                calls_by_reference[stored[1]] = call

    def _add_details(self, fact: Fact, operation: str, details: tuple[str, ...]) -> None:
        if operation == SHELL:
            self.labels.update(details)
            for program in _programs(details):
                self.first_programs.setdefault(program, fact)
        elif operation in CHANGE_OPERATIONS:
            for file in details:
                self.first_changes.setdefault(file, fact)

    def _add_result(self, fact: Fact, calls_by_reference: dict[int, ToolCallFact]) -> None:
        call = calls_by_reference.get(fact[REFERENCE_FIELD])
        code = fact[OUTCOME_FIELD]
        if call is None:
            tool, raw_labels = fact[TOOL_FIELD], NO_LABELS
            operation = operation_of(tool)
        else:
            _, tool, operation, _, raw_labels = call
            is_answer = code == 1 and operation == SHELL and raw_labels
            if is_answer and raw_labels[-1] in ANSWER_PROGRAMS:
                code = OUTCOME_OK
        has_failed = code != OUTCOME_OK and is_failure(code)
        columns = (fact, tool, operation, raw_labels, code, has_failed)
        result = tuple.__new__(ToolResultFact, columns)
        self.results.append(result)
        if operation == SHELL:
            self.results_of_shell.append(result)

    def events_of(self, *operations: str) -> Events:
        """One event per call of a tool with one of these operations."""
        return [
            (call.fact, 1)
            for operation in operations
            for call in self.calls_by_operation.get(operation, ())
        ]

    def action_events(self, operation: str, actions: frozenset[str]) -> Events:
        """One event per call with one of these actions."""
        return [
            (call.fact, 1)
            for call in self.calls_by_operation.get(operation, ())
            if not actions.isdisjoint(call.details)
        ]

    def command_events(self, labels: frozenset[str]) -> Events:
        """One event per shell call that ran one of these commands."""
        if labels.isdisjoint(self.labels):
            return []
        return [
            (call.fact, 1)
            for call in self.calls_by_operation[SHELL]
            if not labels.isdisjoint(call.details)
        ]

    def program_events(self, programs: frozenset[str]) -> Events:
        """One event per shell call that ran one of these programs, with any subcommand."""
        if programs.isdisjoint(self.first_programs):
            return []
        return [
            (call.fact, 1)
            for call in self.calls_by_operation[SHELL]
            if not programs.isdisjoint(_programs(call.details))
        ]

    def shell_results(self, labels: frozenset[str]) -> list[ToolResultFact]:
        """All shell results, if the session ran one of these commands; else none."""
        if labels.isdisjoint(self.labels):
            return []
        return self.results_of_shell

    def single_event(self, fact: Fact | None) -> Events:
        """One event at *fact*; none without a fact."""
        return [] if fact is None else [(fact, 1)]

    @property
    def last_fact(self) -> Fact | None:
        """The last fact, or None."""
        return self.facts[-1] if self.facts else None

    @property
    def first_user_message(self) -> Fact | None:
        """The first user message; None outside conversations."""
        return self.user_messages[0] if self.user_messages and self.is_conversation else None
