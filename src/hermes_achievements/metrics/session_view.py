"""A session as the metrics read it: messages, tool calls and results, in order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.classification.outcomes import OUTCOME_OK, is_failure
from hermes_achievements.classification.shell_commands import (
    ANSWER_PROGRAMS,
    UNKNOWN_OUTCOME_MARK,
    plain_label,
)
from hermes_achievements.classification.tool_kinds import SHELL, operation_of
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
    from hermes_achievements.calendar import Calendar

Events = list[tuple[Fact, int]]
DAY_SECONDS: Final = 86400


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
            and any(
                plain_label(item) in labels
                for item in self.raw_labels
                if not item.endswith(UNKNOWN_OUTCOME_MARK)
            )
        )

    def is_known_failure(self, labels: frozenset[str]) -> bool:
        """Whether one of these commands is known to have failed."""
        return (
            self.operation == SHELL and self.has_failed and not labels.isdisjoint(self.raw_labels)
        )


class SessionView:
    """The facts of a session, grouped for metrics."""

    __slots__ = (
        "calendar",
        "calls",
        "calls_by_operation",
        "facts",
        "failures",
        "gaps",
        "has_human_user",
        "is_conversation",
        "labels",
        "pauses",
        "programs",
        "replies",
        "results",
        "row",
        "user_messages",
    )

    def __init__(self, recorded: RecordedFacts, calendar: Calendar) -> None:
        self.row = recorded.session
        kind = SessionKind(self.row.kind)
        self.calendar = calendar
        self.is_conversation = kind.is_conversation
        self.has_human_user = kind.has_human_user
        self.facts = recorded.all_facts()
        self.user_messages: list[Fact] = []
        self.replies: list[Fact] = []
        self.calls: list[ToolCallFact] = []
        self.results: list[ToolResultFact] = []
        self.calls_by_operation: dict[str, list[ToolCallFact]] = {}
        self.labels: set[str] = set()
        self.programs: set[str] = set()
        self._sort()
        self.failures = [result for result in self.results if result.has_failed]
        # Each message except the first, with the seconds since the previous one.
        self.gaps = [
            (later, later[TIME_FIELD] - earlier[TIME_FIELD])
            for earlier, later in pairwise(self.facts)
        ]
        self.pauses = [(fact, gap) for fact, gap in self.gaps if gap >= DAY_SECONDS]

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
        for stored in fact[CALLS_FIELD]:
            tool = stored[0]
            operation = operation_of(tool)
            result = tuple(stored[2]) if len(stored) > 2 else ()
            details = tuple(map(plain_label, result)) if operation == SHELL else result
            call = ToolCallFact(fact, tool, operation, details, result)
            self.calls.append(call)
            self.calls_by_operation.setdefault(operation, []).append(call)
            if operation == SHELL:
                self.labels.update(details)
                self.programs.update(word.partition(" ")[0] for word in details)
            if stored[1]:
                calls_by_reference[stored[1]] = call

    def _add_result(self, fact: Fact, calls_by_reference: dict[int, ToolCallFact]) -> None:
        call = calls_by_reference.get(fact[REFERENCE_FIELD])
        code = fact[OUTCOME_FIELD]
        if call is None:
            tool = fact[TOOL_FIELD]
            self.results.append(
                ToolResultFact(fact, tool, operation_of(tool), (), code, is_failure(code))
            )
            return
        if (
            code == 1
            and call.operation == SHELL
            and call.raw_labels
            and call.raw_labels[-1] in ANSWER_PROGRAMS
        ):
            code = OUTCOME_OK
        failed = is_failure(code)
        self.results.append(
            ToolResultFact(fact, call.tool, call.operation, call.raw_labels, code, failed)
        )

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
        if programs.isdisjoint(self.programs):
            return []
        return [
            (call.fact, 1)
            for call in self.calls_by_operation[SHELL]
            if any(word.partition(" ")[0] in programs for word in call.details)
        ]

    def shell_results(self, labels: frozenset[str]) -> list[ToolResultFact]:
        """All shell results, if the session ran one of these commands; else none."""
        if labels.isdisjoint(self.labels):
            return []
        return [result for result in self.results if result.operation == SHELL]

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
