"""How it went: results, failures, and getting up again. Order matters here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import shell_commands, tool_kinds
from hermes_achievements.classification.outcomes import TRACEBACK
from hermes_achievements.metrics.facts import TIME_FIELD

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, Result, SessionFacts

COMMIT: Final = frozenset({"git commit"})
PUSH: Final = frozenset({"git push"})
INTERRUPTED: Final = frozenset({124, 130, 137, 143})
MISSING: Final = 127
STUBBORN: Final = 10
FAILED_TESTS: Final = 5
FLAWLESS_CALLS: Final = 25
QUICK_SECONDS: Final = 300
SOURCES: Final = 3


def successful_calls(s: SessionFacts) -> Events:
    """Tool calls that went well."""
    return [(r.fact, 1) for r in s.results if not r.has_failed]


def failed_calls(s: SessionFacts) -> Events:
    """Tool calls that failed: an exit code, an error that says something, a traceback.

    Exit code 1 of a program such as grep or diff is an answer, not a failure.
    """
    return [(r.fact, 1) for r in s.failures]


def failed_commands(s: SessionFacts) -> Events:
    """Shell calls that failed."""
    return [(r.fact, 1) for r in s.failures if r.does == tool_kinds.SHELL]


def missing_commands(s: SessionFacts) -> Events:
    """Shell calls that named a program the machine does not have (exit code 127)."""
    return [
        (r.fact, 1)
        for r in s.failures
        if r.does == tool_kinds.SHELL and r.code % TRACEBACK == MISSING
    ]


def interrupted_commands(s: SessionFacts) -> Events:
    """Shell calls that ran out of time or were stopped (exit codes 124, 130, 137, 143)."""
    return [
        (r.fact, 1)
        for r in s.failures
        if r.does == tool_kinds.SHELL and r.code % TRACEBACK in INTERRUPTED
    ]


def tracebacks(s: SessionFacts) -> Events:
    """Results with a Python traceback at the start of a line."""
    return [(r.fact, 1) for r in s.results if r.code >= TRACEBACK]


def passed_tests(s: SessionFacts) -> Events:
    """Test runs that passed; unknown if the exit code is another command's."""
    return [(r.fact, 1) for r in s.results_of(shell_commands.TESTS) if r.won(shell_commands.TESTS)]


def failed_tests(s: SessionFacts) -> Events:
    """Test runs that failed; unknown if the exit code is another command's."""
    return [(r.fact, 1) for r in s.results_of(shell_commands.TESTS) if r.lost(shell_commands.TESTS)]


def recovered_calls(s: SessionFacts) -> Events:
    """Successes of a tool right after it had failed, in the same session."""
    if not s.failures:
        return []
    failing: dict[str, bool] = {}
    events: Events = []
    for r in s.results:
        if not r.has_failed and failing.get(r.tool):
            events.append((r.fact, 1))
        failing[r.tool] = r.has_failed
    return events


def stubborn_recoveries(s: SessionFacts) -> Events:
    """Successes after ten or more failed calls in a row."""
    if len(s.failures) < STUBBORN:
        return []
    row = 0
    events: Events = []
    for r in s.results:
        if r.has_failed:
            row += 1
        else:
            if row >= STUBBORN:
                events.append((r.fact, 1))
            row = 0
    return events


def test_comebacks(s: SessionFacts) -> Events:
    """Passing test runs after five or more failing ones in a row."""
    row = 0
    events: Events = []
    for r in s.results_of(shell_commands.TESTS):
        if r.lost(shell_commands.TESTS):
            row += 1
        elif r.won(shell_commands.TESTS):
            if row >= FAILED_TESTS:
                events.append((r.fact, 1))
            row = 0
    return events


def red_green_commits(s: SessionFacts) -> Events:
    """A failing test run, then a passing one, then a commit: in this order."""
    return _chain(
        s, [("failed", shell_commands.TESTS), ("passed", shell_commands.TESTS), ("passed", COMMIT)]
    )


def shipped(s: SessionFacts) -> Events:
    """A passing test run, then a commit, then a push: in this order."""
    return _chain(s, [("passed", shell_commands.TESTS), ("passed", COMMIT), ("passed", PUSH)])


def _chain(s: SessionFacts, steps: list[tuple[str, frozenset[str]]]) -> Events:
    """One event each time all steps were taken in order; one call may take several."""
    position = 0
    events: Events = []
    for r in s.results_of(steps[-1][1]):
        while _is_taken(steps[position], r):
            position += 1
            if position == len(steps):
                events.append((r.fact, 1))
                position = 0
                break
    return events


def _is_taken(step: tuple[str, frozenset[str]], result: Result) -> bool:
    verdict, labels = step
    return result.lost(labels) if verdict == "failed" else result.won(labels)


def quick_fixes(s: SessionFacts) -> Events:
    """A failing test run, an edit, and a passing run within five minutes."""
    if tool_kinds.SHELL not in s.by or not any(r.lost(shell_commands.TESTS) for r in s.failures):
        return []
    failed_at: float | None = None
    is_edited = False
    events: Events = []
    for r in s.results:
        if r.lost(shell_commands.TESTS):
            failed_at, is_edited = r.fact[TIME_FIELD], False
        elif r.won(shell_commands.TESTS):
            if (
                failed_at is not None
                and is_edited
                and r.fact[TIME_FIELD] - failed_at <= QUICK_SECONDS
            ):
                events.append((r.fact, 1))
            failed_at = None
        elif r.does in (tool_kinds.EDIT, tool_kinds.WRITE) and not r.has_failed:
            is_edited = True
    return events


def careful_edits(s: SessionFacts) -> Events:
    """Files that were read before they were edited, once each in a session."""
    read: set[str] = set()
    done: set[str] = set()
    events: Events = []
    for call in s.calls:
        if call.does == tool_kinds.READ:
            read.update(call.words)
        elif call.does == tool_kinds.EDIT:
            for word in call.words:
                if word in read and word not in done:
                    done.add(word)
                    events.append((call.fact, 1))
    return events


def researched_writes(s: SessionFacts) -> Events:
    """Sessions that wrote a file after at least three web searches or pages."""
    sources = 0
    for call in s.calls:
        if call.does in (tool_kinds.WEB_SEARCH, tool_kinds.PAGE):
            sources += 1
        elif call.does in (tool_kinds.WRITE, tool_kinds.EDIT) and sources >= SOURCES:
            return [(call.fact, 1)]
    return []


def recalled_work(s: SessionFacts) -> Events:
    """Sessions that looked up an old conversation and then changed a file or committed."""
    is_recalled = False
    for r in s.results:
        if r.does == tool_kinds.RECALL and not r.has_failed:
            is_recalled = True
        elif is_recalled and not r.has_failed and _changes_something(r):
            return [(r.fact, 1)]
    return []


def _changes_something(result: Result) -> bool:
    return result.does in (tool_kinds.WRITE, tool_kinds.EDIT) or result.won(COMMIT)


def flawless_sessions(s: SessionFacts) -> Events:
    """Sessions with 25 tool results in a row, none of which is a failure."""
    run = 0
    for r in s.results if len(s.results) >= FLAWLESS_CALLS else ():
        run = 0 if r.has_failed else run + 1
        if run == FLAWLESS_CALLS:
            return [(r.fact, 1)]
    return []
