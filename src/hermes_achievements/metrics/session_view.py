"""One session as the metrics look at it: what was said, called and answered, in order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.classification.outcomes import FINE, is_failure
from hermes_achievements.classification.shell_commands import ANSWERING, UNKNOWN_LABEL, plain
from hermes_achievements.classification.tool_kinds import SHELL, does
from hermes_achievements.metrics.facts import (
    ASSISTANT,
    CALLS,
    OUTCOME,
    REFERENCE,
    ROLE,
    TIME_FIELD,
    TOOL,
    USER,
    Book,
    Fact,
)
from hermes_achievements.scan.history import Kind

if TYPE_CHECKING:
    from hermes_achievements.calendar import Calendar

Events = list[tuple[Fact, int]]
DAY_SECONDS: Final = 86400


class ToolCallFact(NamedTuple):
    """A tool call: the message that made it, and what it asked for."""

    fact: Fact
    tool: str
    does: str
    words: tuple[str, ...]
    told: tuple[str, ...]  # as `words`, with what the exit code says about each command


class Result(NamedTuple):
    """A tool's answer, and the call it answers where that is known."""

    fact: Fact
    tool: str
    does: str
    told: tuple[str, ...]
    code: int
    has_failed: bool

    def won(self, labels: frozenset[str]) -> bool:
        """Whether one of these commands is known to have gone well."""
        return (
            self.does == SHELL
            and not self.has_failed
            and any(plain(item) in labels for item in self.told if not item.endswith(UNKNOWN_LABEL))
        )

    def lost(self, labels: frozenset[str]) -> bool:
        """Whether one of these commands is known to have failed."""
        return self.does == SHELL and self.has_failed and not labels.isdisjoint(self.told)


class SessionFacts:
    """A session's facts, sorted into what metrics ask for."""

    __slots__ = (
        "by",
        "calendar",
        "calls",
        "facts",
        "failures",
        "gaps",
        "is_conversation",
        "is_spoken_to",
        "labels",
        "pauses",
        "programs",
        "replies",
        "results",
        "row",
        "said",
    )

    def __init__(self, book: Book, calendar: Calendar) -> None:
        self.row = book.session
        kind = Kind(self.row.kind)
        self.calendar = calendar
        self.is_conversation = kind.is_conversation
        self.is_spoken_to = kind.is_spoken_to
        self.facts = book.everything()
        self.said: list[Fact] = []
        self.replies: list[Fact] = []
        self.calls: list[ToolCallFact] = []
        self.results: list[Result] = []
        self.by: dict[str, list[ToolCallFact]] = {}
        self.labels: set[str] = set()
        self.programs: set[str] = set()
        self._sort()
        self.failures = [result for result in self.results if result.has_failed]
        # Each message but the first, with the seconds since the one before.
        self.gaps = [
            (two, two[TIME_FIELD] - item[TIME_FIELD]) for item, two in pairwise(self.facts)
        ]
        self.pauses = [(fact, gap) for fact, gap in self.gaps if gap >= DAY_SECONDS]

    def _sort(self) -> None:
        asked: dict[int, ToolCallFact] = {}
        for fact in self.facts:
            role = fact[ROLE]
            if role == USER:
                if self.is_spoken_to:
                    self.said.append(fact)
            elif role == ASSISTANT:
                if fact[CALLS]:
                    self._take_calls(fact, asked)
                else:
                    self.replies.append(fact)
            else:
                self._take_result(fact, asked)

    def _take_calls(self, fact: Fact, asked: dict[int, ToolCallFact]) -> None:
        for stored in fact[CALLS]:
            tool = stored[0]
            operation = does(tool)
            result = tuple(stored[2]) if len(stored) > 2 else ()
            words = tuple(map(plain, result)) if operation == SHELL else result
            call = ToolCallFact(fact, tool, operation, words, result)
            self.calls.append(call)
            self.by.setdefault(operation, []).append(call)
            if operation == SHELL:
                self.labels.update(words)
                self.programs.update(word.partition(" ")[0] for word in words)
            if stored[1]:
                asked[stored[1]] = call

    def _take_result(self, fact: Fact, asked: dict[int, ToolCallFact]) -> None:
        call = asked.get(fact[REFERENCE])
        code = fact[OUTCOME]
        if call is None:
            tool = fact[TOOL]
            self.results.append(Result(fact, tool, does(tool), (), code, is_failure(code)))
            return
        if code == 1 and call.does == SHELL and call.told and call.told[-1] in ANSWERING:
            code = FINE
        failed = is_failure(code)
        self.results.append(Result(fact, call.tool, call.does, call.told, code, failed))

    def used(self, *operations: str) -> Events:
        """One event for each call of a tool that does one of these."""
        return [(call.fact, 1) for operation in operations for call in self.by.get(operation, ())]

    def acted(self, operation: str, actions: frozenset[str]) -> Events:
        """One event for each call whose action is one of these."""
        return [
            (call.fact, 1)
            for call in self.by.get(operation, ())
            if not actions.isdisjoint(call.words)
        ]

    def ran(self, labels: frozenset[str]) -> Events:
        """One event for each shell call that ran one of these commands."""
        if labels.isdisjoint(self.labels):
            return []
        return [(call.fact, 1) for call in self.by[SHELL] if not labels.isdisjoint(call.words)]

    def ran_program(self, programs: frozenset[str]) -> Events:
        """One event for each shell call that ran one of these programs, whatever they did."""
        if programs.isdisjoint(self.programs):
            return []
        return [
            (call.fact, 1)
            for call in self.by[SHELL]
            if any(word.partition(" ")[0] in programs for word in call.words)
        ]

    def results_of(self, labels: frozenset[str]) -> list[Result]:
        """The shell's results, if any of these commands was run at all."""
        if labels.isdisjoint(self.labels):
            return []
        return [result for result in self.results if result.does == SHELL]

    def once(self, fact: Fact | None) -> Events:
        """One event at *fact*, if there is one."""
        return [] if fact is None else [(fact, 1)]

    @property
    def last(self) -> Fact | None:
        """The last thing that happened."""
        return self.facts[-1] if self.facts else None

    @property
    def first_said(self) -> Fact | None:
        """What a person said first; None outside conversations."""
        return self.said[0] if self.said and self.is_conversation else None
