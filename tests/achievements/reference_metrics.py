"""A simple reference implementation of every metric: one pass over all rows per metric.

It has no state between rows, sessions or metrics, and uses only word tables of the code
under test.

    reference_metrics  the metrics
    reference_rows     counted rows, tool calls and outcomes
    reference_shell    programs of shell commands
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from achievements.reference_rows import (
    CLEAN,
    NOTABLE,
    ReferenceHistory,
    agent,
    agent_in_project,
    calls,
    calls_of,
    files,
    first_user_message,
    gaps,
    has_human_user,
    is_conversation,
    is_known_failure,
    is_known_success,
    is_place,
    labels,
    last,
    local,
    maker,
    model,
    moment,
    operation_of,
    reference_sessions,
    replies,
    results,
    user_messages,
)
from achievements.reference_shell import shell_labels
from hermes_achievements.classification import shell_commands, tool_kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from achievements.reference_rows import Events, ReferenceSession, Result
    from hermes_achievements.scan.history import ScannedMessage

__all__ = ["COUNTS", "PEAKS", "VARIETY", "ReferenceHistory", "shell_labels"]
__all__ += ["count_by_day", "max_in_session", "peak", "variety"]
# --- counts ------------------------------------------------------------------------------


def each(rows: list[ScannedMessage]) -> Events:
    return [(row, 1) for row in rows]


def call_events(session: ReferenceSession, *operations: str) -> Events:
    return each([call.row for call in calls(session, *operations)])


def action_events(session: ReferenceSession, operation: str, actions: str) -> Events:
    result = []
    for call in calls(session, operation):
        action = call.arguments.get("action")
        if isinstance(action, str) and action.lower() in actions.split():
            result.append(call.row)
    return each(result)


def command_events(session: ReferenceSession, labels_to_match: frozenset[str]) -> Events:
    return each(
        [call.row for call in calls(session, tool_kinds.SHELL) if labels_to_match & {*labels(call)}]
    )


def program_events(session: ReferenceSession, labels_to_match: frozenset[str]) -> Events:
    programs_of_calls = [
        (c.row, {label.split(" ")[0] for label in labels(c)}) for c in calls(session, "shell")
    ]
    return each([row for row, programs in programs_of_calls if labels_to_match & programs])


def result_events(session: ReferenceSession, is_wanted: Callable[[Result], object]) -> Events:
    return each([result.row for result in results(session) if is_wanted(result)])


def is_shell(result: Result) -> bool:
    return operation_of(result.tool) == tool_kinds.SHELL


def test_passed(result: Result) -> bool:
    return is_known_success(result, shell_commands.TEST_COMMANDS)


def test_failed(result: Result) -> bool:
    return is_known_failure(result, shell_commands.TEST_COMMANDS)


def began_between(session: ReferenceSession, first: int, end: int) -> Events:
    return each(
        [row for row in first_user_message(session) if first <= local(session, row).hour < end]
    )


def returned(session: ReferenceSession, days: int) -> Events:
    return each(
        [row for row, gap in gaps(session) if gap >= days * 86400 and row in user_messages(session)]
    )


def changed(session: ReferenceSession) -> list[tuple[ScannedMessage, tuple[str, str]]]:
    """Written or edited files: the message, the extension and the path."""
    return [
        (c.row, file)
        for c in calls(session, tool_kinds.WRITE, tool_kinds.EDIT)
        for file in files(c)
    ]


def first_of_each(items: list[tuple[ScannedMessage, Any]]) -> Events:
    values = [value for _, value in items]
    return [(row, 1) for n, (row, value) in enumerate(items) if value not in values[:n]]


def delegated_tasks(session: ReferenceSession) -> Events:
    result = [(c.row, c.arguments.get("tasks")) for c in calls(session, tool_kinds.DELEGATE)]
    return [(row, len(tasks) if isinstance(tasks, list) and tasks else 1) for row, tasks in result]


def recovered(session: ReferenceSession) -> Events:
    outcome = results(session)
    rows = []
    for position, result in enumerate(outcome):
        before = [item for item in outcome[:position] if item.tool == result.tool]
        if not result.has_failed and before and before[-1].has_failed:
            rows.append(result.row)
    return each(rows)


def after_failures(items: list[Result], minimum: int) -> Events:
    """Successes after at least *least* consecutive failures, with the number of failures."""
    events: Events = []
    for position, result in enumerate(items):
        run = 0
        while run < position and items[position - 1 - run].has_failed:
            run += 1
        if not result.has_failed and run >= minimum:
            events.append((result.row, run))
    return events


def in_order(session: ReferenceSession, *steps: Callable[[Result], object]) -> Events:
    """One event per completed sequence of steps; one result can match several steps."""
    remaining, rows = [*steps], []
    for result in results(session):
        while remaining and remaining[0](result):
            remaining.pop(0)
        if not remaining:
            remaining = [*steps]
            rows.append(result.row)
    return each(rows)


def passed(label: str) -> Callable[[Result], object]:
    return lambda result: is_known_success(result, frozenset({label}))


def fixed_quickly(session: ReferenceSession) -> Events:
    """A passing test run after a failing one, with an edit in between."""
    rows, is_edited, failed = [], False, None
    for result in results(session):
        if test_failed(result):
            failed, is_edited = result, False
        elif test_passed(result):
            if failed and is_edited and result.row.at - failed.row.at <= 300:
                rows.append(result.row)
            failed = None
        elif (
            operation_of(result.tool) in (tool_kinds.EDIT, tool_kinds.WRITE)
            and not result.has_failed
        ):
            is_edited = True
    return each(rows)


def read_before_edited(session: ReferenceSession) -> Events:
    result = calls(session, tool_kinds.READ, tool_kinds.EDIT)
    edits = []
    for position, call in enumerate(result):
        if operation_of(call.tool) == tool_kinds.EDIT:
            before = [
                item for item in result[:position] if operation_of(item.tool) == tool_kinds.READ
            ]
            read = [file for item in before for file in files(item)]
            edits += [(call.row, file) for file in files(call) if file in read]
    return first_of_each(edits)


def researched(session: ReferenceSession) -> Events:
    result = calls(
        session, tool_kinds.WEB_SEARCH, tool_kinds.PAGE, tool_kinds.WRITE, tool_kinds.EDIT
    )
    sources = [
        operation_of(call.tool) in (tool_kinds.WEB_SEARCH, tool_kinds.PAGE) for call in result
    ]
    rows = [c.row for n, c in enumerate(result) if not sources[n] and sum(sources[:n]) >= 3]
    return each(rows[:1])


def recalled(session: ReferenceSession) -> Events:
    fine = [result for result in results(session) if not result.has_failed]
    rows = []
    for position, result in enumerate(fine):
        is_change = operation_of(result.tool) in (tool_kinds.WRITE, tool_kinds.EDIT) or passed(
            "git commit"
        )(result)
        if is_change and any(
            operation_of(item.tool) == tool_kinds.RECALL for item in fine[:position]
        ):
            rows.append(result.row)
    return each(rows[:1])


def flawless(session: ReferenceSession) -> Events:
    result = results(session)
    for end in range(25, len(result) + 1):
        if not any(item.has_failed for item in result[end - 25 : end]):
            return each([result[end - 1].row])
    return []


def pure_talk(session: ReferenceSession) -> Events:
    """The tenth consecutive message without a tool call in between."""
    rows = [row for row in session.rows if row.role == "user" or calls_of(row)]
    for end in range(10, len(rows) + 1):
        if all(row.role == "user" for row in rows[end - 10 : end]):
            return each([rows[end - 1]]) if is_conversation(session) else []
    return []


def one_shot(session: ReferenceSession) -> Events:
    """The first reply to each message that caused ten or more calls."""
    result = []
    for number, row in enumerate(session.rows):
        turn_rows = []
        for later in session.rows[number + 1 :] if row in user_messages(session) else []:
            if later.role == "user":
                break
            turn_rows.append(later)
        made_calls = 0
        for later in turn_rows:
            made_calls += len(calls_of(later))
            if later.role == "assistant" and not calls_of(later) and made_calls >= 10:
                result.append(later)
                break
    return each(result)


def amount(session: ReferenceSession, number: float) -> Events:
    return [(row, round(number)) for row in last(session) if round(number) > 0]


def read_tokens(session: ReferenceSession) -> int:
    return session.row.input_tokens + session.row.cached_tokens


COUNTS: dict[str, Callable[[ReferenceSession], Events]] = {
    "messages_sent": lambda t: each(user_messages(t)),
    "characters_typed": lambda t: [(row, row.length) for row in user_messages(t) if row.length],
    "long_messages": lambda t: each([row for row in user_messages(t) if row.length >= 2000]),
    "short_messages": lambda t: each([row for row in user_messages(t) if 1 <= row.length <= 12]),
    "replies": lambda t: each(replies(t)) if has_human_user(t) else [],
    "conversations": lambda t: each(first_user_message(t)),
    "branches": lambda t: each(first_user_message(t)) if t.row.kind == "branch" else [],
    "continuations": lambda t: each(t.rows[:1]) if t.row.kind == "continuation" else [],
    "subagent_runs": lambda t: each(last(t)) if t.row.kind == "subagent" else [],
    "scheduled_runs": lambda t: each(last(t)) if t.row.kind == "scheduled" else [],
    "titled": lambda t: each(first_user_message(t)) if t.row.is_titled else [],
    "clean_ends": lambda t: (
        each(last(t))
        if first_user_message(t)
        and t.row.ended_at is not None
        and t.row.end_reason in CLEAN.split()
        else []
    ),
    "returns_after_week": lambda t: returned(t, 7),
    "returns_after_month": lambda t: returned(t, 30),
    "weekend_conversations": lambda t: each(
        [r for r in first_user_message(t) if local(t, r).weekday() > 4]
    ),
    "night_conversations": lambda t: began_between(t, 0, 5),
    "dawn_conversations": lambda t: began_between(t, 5, 7),
    "lunch_conversations": lambda t: began_between(t, 12, 13),
    "evening_conversations": lambda t: began_between(t, 20, 24),
    "active_seconds": lambda t: [
        (row, int(gap)) for row, gap in gaps(t) if has_human_user(t) and 1 <= gap <= 300
    ],
    "pure_talks": pure_talk,
    "one_shots": one_shot,
    "tool_calls": lambda t: each([call.row for call in calls(t)]),
    "parallel_batches": lambda t: each([row for row in t.rows if len(calls_of(row)) >= 3]),
    "tools_in_session": lambda t: first_of_each([(c.row, c.tool) for c in calls(t)]),
    "shell_commands": lambda t: call_events(t, tool_kinds.SHELL),
    "background_jobs": lambda t: command_events(t, frozenset("&")),
    "files_read": lambda t: call_events(t, tool_kinds.READ),
    "files_written": lambda t: call_events(t, tool_kinds.WRITE),
    "files_edited": lambda t: call_events(t, tool_kinds.EDIT),
    "file_searches": lambda t: call_events(t, tool_kinds.FIND),
    "files_touched": lambda t: first_of_each(changed(t)),
    "languages_in_session": lambda t: first_of_each([(r, f[0]) for r, f in changed(t) if f[0]]),
    "web_searches": lambda t: call_events(t, tool_kinds.WEB_SEARCH),
    "pages_read": lambda t: call_events(t, tool_kinds.PAGE),
    "browser_steps": lambda t: call_events(t, tool_kinds.BROWSER),
    "delegations": delegated_tasks,
    "jobs_scheduled": lambda t: action_events(t, tool_kinds.SCHEDULE, "create add schedule"),
    "memories_saved": lambda t: action_events(
        t, tool_kinds.MEMORY, "add replace remember write save append"
    ),
    "history_searches": lambda t: call_events(t, tool_kinds.RECALL),
    "images_made": lambda t: call_events(t, tool_kinds.DRAW),
    "images_seen": lambda t: call_events(t, tool_kinds.SEE),
    "voices_made": lambda t: call_events(t, tool_kinds.SPEAK),
    "code_runs": lambda t: call_events(t, tool_kinds.CODE),
    "skills_used": lambda t: call_events(t, tool_kinds.SKILL),
    "skills_written": lambda t: action_events(
        t, tool_kinds.SKILL_WRITE, "create edit patch write_file update add"
    ),
    "plans": lambda t: call_events(t, tool_kinds.PLAN),
    "questions_asked": lambda t: call_events(t, tool_kinds.ASK),
    "mcp_calls": lambda t: call_events(t, tool_kinds.MCP),
    "commits": lambda t: command_events(t, frozenset({"git commit"})),
    "pushes": lambda t: command_events(t, frozenset({"git push"})),
    "merges": lambda t: command_events(t, shell_commands.MERGE_COMMANDS),
    "git_rescues": lambda t: command_events(t, shell_commands.GIT_RESCUE_COMMANDS),
    "git_tags": lambda t: command_events(t, frozenset({"git tag"})),
    "test_runs": lambda t: command_events(t, shell_commands.TEST_COMMANDS),
    "installs": lambda t: command_events(t, shell_commands.INSTALL_COMMANDS),
    "builds": lambda t: command_events(t, shell_commands.BUILD_COMMANDS),
    "checks": lambda t: command_events(t, shell_commands.CHECK_COMMANDS),
    "container_commands": lambda t: program_events(t, shell_commands.CONTAINER_PROGRAMS),
    "deploys": lambda t: program_events(t, shell_commands.DEPLOY_PROGRAMS),
    "database_commands": lambda t: program_events(t, shell_commands.DATABASE_PROGRAMS),
    "http_requests": lambda t: program_events(t, shell_commands.HTTP_PROGRAMS),
    "remote_commands": lambda t: program_events(t, shell_commands.REMOTE_PROGRAMS),
    "successful_calls": lambda t: result_events(t, lambda r: not r.has_failed),
    "failed_calls": lambda t: result_events(t, lambda r: r.has_failed),
    "failed_commands": lambda t: result_events(t, lambda r: r.has_failed and is_shell(r)),
    "missing_commands": lambda t: result_events(t, lambda r: is_shell(r) and r.exit_code == 127),
    "interrupted_commands": lambda t: result_events(
        t, lambda r: is_shell(r) and r.exit_code in (124, 130, 137, 143)
    ),
    "tracebacks": lambda t: result_events(t, lambda r: r.has_trace),
    "passed_tests": lambda t: result_events(t, test_passed),
    "failed_tests": lambda t: result_events(t, test_failed),
    "recovered_calls": recovered,
    "stubborn_recoveries": lambda t: [(row, 1) for row, _ in after_failures(results(t), 10)],
    "test_comebacks": lambda t: [
        (row, 1)
        for row, _ in after_failures([r for r in results(t) if test_failed(r) or test_passed(r)], 5)
    ],
    "red_green_commits": lambda t: in_order(
        t,
        test_failed,
        test_passed,
        passed("git commit"),
    ),
    "shipped": lambda t: in_order(
        t,
        test_passed,
        passed("git commit"),
        passed("git push"),
    ),
    "quick_fixes": fixed_quickly,
    "careful_edits": read_before_edited,
    "researched_writes": researched,
    "recalled_work": recalled,
    "flawless_sessions": flawless,
    "input_tokens": lambda t: amount(t, t.row.input_tokens),
    "output_tokens": lambda t: amount(t, t.row.output_tokens),
    "cached_tokens": lambda t: amount(t, t.row.cached_tokens),
    "reasoning_tokens": lambda t: amount(t, t.row.reasoning_tokens),
    "cost_cents": lambda t: amount(t, t.row.cost_usd * 100),
    "well_cached": lambda t: (
        each(last(t))
        if t.row.ended_at is not None
        and read_tokens(t) >= 50_000
        and t.row.cached_tokens >= 0.8 * read_tokens(t)
        else []
    ),
}


# --- peaks and variety -------------------------------------------------------------------


def clean_runs(session: ReferenceSession) -> Events:
    outcome = results(session)
    events: Events = []
    for position, result in enumerate(outcome):
        run = 0
        while run <= position and not outcome[position - run].has_failed:
            run += 1
        events.append((result.row, run))
    return events


def notable(session: ReferenceSession) -> list[tuple[ScannedMessage, str]]:
    result = [
        (row, NOTABLE.get(local(session, row).strftime("%m-%d"), ""))
        for row in user_messages(session)
    ]
    fridays = [
        row for row in user_messages(session) if local(session, row).strftime("%d %w") == "13 5"
    ]
    return [(row, name) for row, name in result if name] + [(r, "friday the 13th") for r in fridays]


PEAKS: dict[str, Callable[[ReferenceSession], Events]] = {
    "longest_message": lambda t: [(row, row.length) for row in user_messages(t)],
    "calls_at_once": lambda t: [(row, len(calls_of(row))) for row in t.rows],
    "clean_run": clean_runs,
    "failures_overcome": lambda t: after_failures(results(t), 1),
    "days_of_silence": lambda t: [
        (row, int(gap // 86400)) for row, gap in gaps(t) if row in user_messages(t)
    ],
    "hours_open": lambda t: [(r, int((r.at - t.rows[0].at) // 3600)) for r in user_messages(t)],
}

VARIETY: dict[str, Callable[[ReferenceSession], list[tuple[ScannedMessage, str]]]] = {
    "tool_kinds": lambda t: [(call.row, call.tool) for call in calls(t)],
    "models": lambda t: [(row, model(t)) for row in t.rows[:1] if model(t)],
    "makers": lambda t: [(row, maker(t)) for row in t.rows[:1] if maker(t)],
    "places": lambda t: [(row, t.row.source) for row in user_messages(t)[:1] if is_place(t)],
    "agents": lambda t: [(row, agent(t)) for row in user_messages(t)[:1]],
    "project_agents": lambda t: [
        (row, agent_in_project(t)) for row in user_messages(t)[:1] if t.row.project
    ],
    "languages": lambda t: [(row, file[0]) for row, file in changed(t) if file[0]],
    "programs": lambda t: [
        (call.row, label.split(" ")[0])
        for call in calls(t, tool_kinds.SHELL)
        for label in labels(call)
        if label != "&"
    ],
    "hours": lambda t: [(row, str(local(t, row).hour)) for row in user_messages(t)],
    "weekdays": lambda t: [(row, str(local(t, row).weekday())) for row in user_messages(t)],
    "months": lambda t: [(row, local(t, row).strftime("%m")) for row in user_messages(t)],
    "notable_days": notable,
}


# --- the three kinds of metrics ----------------------------------------------------------


def count_by_day(metric: str, history: ReferenceHistory, zone: tzinfo) -> dict[str, int]:
    """The total of a metric per day with events."""
    result: dict[str, int] = defaultdict(int)
    for session in reference_sessions(history, zone):
        for row, amount in COUNTS[metric](session):
            result[moment(row.at, zone).date().isoformat()] += amount
    return dict(result)


def max_in_session(metric: str, history: ReferenceHistory, zone: tzinfo) -> int:
    """The largest total of a metric in one session."""
    sums = [
        sum(amount for _, amount in COUNTS[metric](session))
        for session in reference_sessions(history, zone)
    ]
    return max(sums, default=0)


def peak(metric: str, history: ReferenceHistory, zone: tzinfo) -> int:
    """The largest amount of a metric."""
    result = [
        amount
        for session in reference_sessions(history, zone)
        for _, amount in PEAKS[metric](session)
    ]
    return max(result, default=0)


def variety(
    metric: str, history: ReferenceHistory, zone: tzinfo
) -> dict[str, tuple[float, str, int]]:
    """Each value with its first appearance: time, session and message."""
    result: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for session in reference_sessions(history, zone):
        for row, value in VARIETY[metric](session):
            result[value].append((row.at, row.id, session.row.id))
    first = {value: min(seen) for value, seen in result.items()}
    return {value: (at, session_id, row_id) for value, (at, row_id, session_id) in first.items()}
