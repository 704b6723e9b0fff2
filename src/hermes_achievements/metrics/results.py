"""Metrics of results, failures and recoveries; they depend on the order of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import shell_commands, tool_kinds
from hermes_achievements.classification.outcomes import TRACEBACK_FLAG
from hermes_achievements.metrics.facts import TIME_FIELD

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionView, ToolResultFact

COMMIT_LABELS: Final = frozenset({"git commit"})
PUSH_LABELS: Final = frozenset({"git push"})
INTERRUPT_EXIT_CODES: Final = frozenset({124, 130, 137, 143})
NOT_FOUND_EXIT_CODE: Final = 127
MIN_STUBBORN_FAILURES: Final = 10
MIN_FAILED_TEST_RUNS: Final = 5
FLAWLESS_RUN_CALLS: Final = 25
QUICK_FIX_SECONDS: Final = 300
MIN_RESEARCH_SOURCES: Final = 3


def successful_calls(session: SessionView) -> Events:
    """Successful tool calls."""
    return [(result.fact, 1) for result in session.results if not result.has_failed]


def failed_calls(session: SessionView) -> Events:
    """Tool calls that failed: an exit code, an error message, a traceback.

    Exit code 1 of a program such as grep or diff is an answer, not a failure.
    """
    return [(result.fact, 1) for result in session.failures]


def failed_commands(session: SessionView) -> Events:
    """Shell calls that failed."""
    return [(result.fact, 1) for result in session.failures if result.operation == tool_kinds.SHELL]


def missing_commands(session: SessionView) -> Events:
    """Shell calls that named a program the machine does not have (exit code 127)."""
    return [
        (result.fact, 1)
        for result in session.failures
        if result.operation == tool_kinds.SHELL
        and result.code % TRACEBACK_FLAG == NOT_FOUND_EXIT_CODE
    ]


def interrupted_commands(session: SessionView) -> Events:
    """Shell calls that ran out of time or were stopped (exit codes 124, 130, 137, 143)."""
    return [
        (result.fact, 1)
        for result in session.failures
        if result.operation == tool_kinds.SHELL
        and result.code % TRACEBACK_FLAG in INTERRUPT_EXIT_CODES
    ]


def tracebacks(session: SessionView) -> Events:
    """Results with a Python traceback at the start of a line."""
    return [(result.fact, 1) for result in session.results if result.code >= TRACEBACK_FLAG]


def passed_tests(session: SessionView) -> Events:
    """Test runs that passed; unknown if the exit code is another command's."""
    return [
        (result.fact, 1)
        for result in session.shell_results(shell_commands.TEST_COMMANDS)
        if result.is_known_success(shell_commands.TEST_COMMANDS)
    ]


def failed_tests(session: SessionView) -> Events:
    """Test runs that failed; unknown if the exit code is another command's."""
    return [
        (result.fact, 1)
        for result in session.shell_results(shell_commands.TEST_COMMANDS)
        if result.is_known_failure(shell_commands.TEST_COMMANDS)
    ]


def recovered_calls(session: SessionView) -> Events:
    """Successes of a tool right after it had failed, in the same session."""
    if not session.failures:
        return []
    failing: dict[str, bool] = {}
    events: Events = []
    for result in session.results:
        if not result.has_failed and failing.get(result.tool):
            events.append((result.fact, 1))
        failing[result.tool] = result.has_failed
    return events


def stubborn_recoveries(session: SessionView) -> Events:
    """Successes after ten or more failed calls in a row."""
    if len(session.failures) < MIN_STUBBORN_FAILURES:
        return []
    run = 0
    events: Events = []
    for result in session.results:
        if result.has_failed:
            run += 1
        else:
            if run >= MIN_STUBBORN_FAILURES:
                events.append((result.fact, 1))
            run = 0
    return events


def test_comebacks(session: SessionView) -> Events:
    """Passing test runs after five or more failing ones in a row."""
    run = 0
    events: Events = []
    for result in session.shell_results(shell_commands.TEST_COMMANDS):
        if result.is_known_failure(shell_commands.TEST_COMMANDS):
            run += 1
        elif result.is_known_success(shell_commands.TEST_COMMANDS):
            if run >= MIN_FAILED_TEST_RUNS:
                events.append((result.fact, 1))
            run = 0
    return events


def red_green_commits(session: SessionView) -> Events:
    """A failing test run, then a passing one, then a commit: in this order."""
    return _count_sequences(
        session,
        [
            ("failed", shell_commands.TEST_COMMANDS),
            ("passed", shell_commands.TEST_COMMANDS),
            ("passed", COMMIT_LABELS),
        ],
    )


def shipped(session: SessionView) -> Events:
    """A passing test run, then a commit, then a push: in this order."""
    return _count_sequences(
        session,
        [
            ("passed", shell_commands.TEST_COMMANDS),
            ("passed", COMMIT_LABELS),
            ("passed", PUSH_LABELS),
        ],
    )


def _count_sequences(session: SessionView, steps: list[tuple[str, frozenset[str]]]) -> Events:
    """One event per completed sequence of steps; one call can match several steps."""
    position = 0
    events: Events = []
    for result in session.shell_results(steps[-1][1]):
        while _matches_step(steps[position], result):
            position += 1
            if position == len(steps):
                events.append((result.fact, 1))
                position = 0
                break
    return events


def _matches_step(step: tuple[str, frozenset[str]], result: ToolResultFact) -> bool:
    verdict, labels = step
    return (
        result.is_known_failure(labels) if verdict == "failed" else result.is_known_success(labels)
    )


def quick_fixes(session: SessionView) -> Events:
    """A failing test run, an edit, and a passing run within five minutes."""
    if tool_kinds.SHELL not in session.calls_by_operation or not any(
        result.is_known_failure(shell_commands.TEST_COMMANDS) for result in session.failures
    ):
        return []
    failed_at: float | None = None
    is_edited = False
    events: Events = []
    for result in session.results:
        if result.is_known_failure(shell_commands.TEST_COMMANDS):
            failed_at, is_edited = result.fact[TIME_FIELD], False
        elif result.is_known_success(shell_commands.TEST_COMMANDS):
            if (
                failed_at is not None
                and is_edited
                and result.fact[TIME_FIELD] - failed_at <= QUICK_FIX_SECONDS
            ):
                events.append((result.fact, 1))
            failed_at = None
        elif result.operation in (tool_kinds.EDIT, tool_kinds.WRITE) and not result.has_failed:
            is_edited = True
    return events


def careful_edits(session: SessionView) -> Events:
    """Files that were read before they were edited, once each in a session."""
    if not {tool_kinds.READ, tool_kinds.EDIT} <= session.calls_by_operation.keys():
        return []
    read: set[str] = set()
    counted: set[str] = set()
    events: Events = []
    for call in session.calls:
        if call.operation == tool_kinds.READ:
            read.update(call.details)
        elif call.operation == tool_kinds.EDIT:
            for file in call.details:
                if file in read and file not in counted:
                    counted.add(file)
                    events.append((call.fact, 1))
    return events


def researched_writes(session: SessionView) -> Events:
    """Sessions that wrote a file after at least three web searches or pages."""
    if {tool_kinds.WEB_SEARCH, tool_kinds.PAGE}.isdisjoint(session.calls_by_operation):
        return []
    sources = 0
    for call in session.calls:
        if call.operation in (tool_kinds.WEB_SEARCH, tool_kinds.PAGE):
            sources += 1
        elif (
            call.operation in (tool_kinds.WRITE, tool_kinds.EDIT)
            and sources >= MIN_RESEARCH_SOURCES
        ):
            return [(call.fact, 1)]
    return []


def recalled_work(session: SessionView) -> Events:
    """Sessions that looked up an old conversation and then changed a file or committed."""
    is_recalled = False
    for result in session.results:
        if result.operation == tool_kinds.RECALL and not result.has_failed:
            is_recalled = True
        elif is_recalled and not result.has_failed and _is_change(result):
            return [(result.fact, 1)]
    return []


def _is_change(result: ToolResultFact) -> bool:
    return result.operation in (tool_kinds.WRITE, tool_kinds.EDIT) or result.is_known_success(
        COMMIT_LABELS
    )


def flawless_sessions(session: SessionView) -> Events:
    """Sessions with 25 tool results in a row, none of which is a failure."""
    run = 0
    for result in session.results if len(session.results) >= FLAWLESS_RUN_CALLS else ():
        run = 0 if result.has_failed else run + 1
        if run == FLAWLESS_RUN_CALLS:
            return [(result.fact, 1)]
    return []
