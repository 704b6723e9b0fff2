"""Metrics of tool calls, by the operation of the tool or the programs of shell commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import shell_commands, tool_kinds
from hermes_achievements.classification.shell_commands import BACKGROUND_LABEL
from hermes_achievements.metrics.facts import CALLS_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_achievements.metrics.facts import Fact
    from hermes_achievements.metrics.session_view import Events, SessionView

    Metric = Callable[[SessionView], Events]

MIN_PARALLEL_CALLS: Final = 3
MEMORY_WRITE_ACTIONS: Final = frozenset({"add", "replace", "remember", "write", "save", "append"})
SKILL_WRITE_ACTIONS: Final = frozenset({"create", "edit", "patch", "write_file", "update", "add"})
SCHEDULE_WRITE_ACTIONS: Final = frozenset({"create", "add", "remind", "schedule"})


def tool_calls(session: SessionView) -> Events:
    """Tool calls of the agent and its sub-agents."""
    return [(call.fact, 1) for call in session.calls]


def parallel_batches(session: SessionView) -> Events:
    """Messages that called three tools or more at once."""
    return [
        (fact, 1) for fact in session.call_messages if len(fact[CALLS_FIELD]) >= MIN_PARALLEL_CALLS
    ]


def tools_in_session(session: SessionView) -> Events:
    """Different tools, counted once in each session."""
    return [(fact, 1) for fact in session.first_tools.values()]


def background_jobs(session: SessionView) -> Events:
    """Shell calls that were started in the background."""
    return [
        (call.fact, 1)
        for call in session.calls_by_operation.get(tool_kinds.SHELL, ())
        if BACKGROUND_LABEL in call.details
    ]


def files_touched(session: SessionView) -> Events:
    """Different files written or edited, counted once in each session."""
    return [(fact, 1) for fact in session.first_changes.values()]


def languages_in_session(session: SessionView) -> Events:
    """Different kinds of files written or edited, counted once in each session."""
    kinds: dict[str, Fact] = {}
    for file, fact in session.first_changes.items():
        kinds.setdefault(file.partition(":")[0], fact)
    return [(fact, 1) for kind, fact in kinds.items() if kind]


def delegations(session: SessionView) -> Events:
    """Tasks handed to sub-agents."""
    return [
        (call.fact, int(call.details[0]) if call.details else 1)
        for call in session.calls_by_operation.get(tool_kinds.DELEGATE, ())
    ]


def _described(description: str, events: Metric) -> Metric:
    events.__doc__ = description
    return events


def _events_of(description: str, operation: str) -> Metric:
    return _described(description, lambda session: session.events_of(operation))


def _action_events(description: str, operation: str, actions: frozenset[str]) -> Metric:
    return _described(description, lambda session: session.action_events(operation, actions))


def _command_events(description: str, labels: frozenset[str]) -> Metric:
    return _described(description, lambda session: session.command_events(labels))


def _program_events(description: str, programs: frozenset[str]) -> Metric:
    return _described(description, lambda session: session.program_events(programs))


CALL_METRICS: Final = {
    "shell_commands": _events_of("Shell calls.", tool_kinds.SHELL),
    "files_read": _events_of("Calls that read a file.", tool_kinds.READ),
    "files_written": _events_of("Calls that wrote a whole file.", tool_kinds.WRITE),
    "files_edited": _events_of("Calls that changed a part of a file.", tool_kinds.EDIT),
    "file_searches": _events_of("Calls that searched in files.", tool_kinds.FIND),
    "web_searches": _events_of("Searches of the web.", tool_kinds.WEB_SEARCH),
    "pages_read": _events_of("Web pages fetched and read.", tool_kinds.PAGE),
    "browser_steps": _events_of("Steps taken in a browser.", tool_kinds.BROWSER),
    "history_searches": _events_of(
        "Searches of past conversations by the agent.", tool_kinds.RECALL
    ),
    "images_made": _events_of("Pictures generated.", tool_kinds.DRAW),
    "images_seen": _events_of("Pictures viewed.", tool_kinds.SEE),
    "voices_made": _events_of("Texts spoken aloud.", tool_kinds.SPEAK),
    "code_runs": _events_of("Programs written by the agent and run immediately.", tool_kinds.CODE),
    "skills_used": _events_of("Skills viewed.", tool_kinds.SKILL),
    "plans": _events_of("Calls of the todo list.", tool_kinds.PLAN),
    "questions_asked": _events_of("Questions the agent asked.", tool_kinds.ASK),
    "mcp_calls": _events_of("Calls of tools that an MCP server offers.", tool_kinds.MCP),
    "jobs_scheduled": _action_events(
        "Jobs put on the schedule.", tool_kinds.SCHEDULE, SCHEDULE_WRITE_ACTIONS
    ),
    "memories_saved": _action_events(
        "Entries written to memory; lookups do not count.", tool_kinds.MEMORY, MEMORY_WRITE_ACTIONS
    ),
    "skills_written": _action_events(
        "Skills created or improved.", tool_kinds.SKILL_WRITE, SKILL_WRITE_ACTIONS
    ),
    "commits": _command_events("Shell calls that ran `git commit`.", frozenset({"git commit"})),
    "pushes": _command_events("Shell calls that ran `git push`.", frozenset({"git push"})),
    "merges": _command_events(
        "Shell calls that merged, rebased or cherry-picked.", shell_commands.MERGE_COMMANDS
    ),
    "git_rescues": _command_events(
        "Shell calls that undid changes: git revert, reset, restore, stash or bisect.",
        shell_commands.GIT_RESCUE_COMMANDS,
    ),
    "git_tags": _command_events("Shell calls that ran `git tag`.", frozenset({"git tag"})),
    "test_runs": _command_events("Shell calls that ran tests.", shell_commands.TEST_COMMANDS),
    "installs": _command_events(
        "Shell calls that installed packages.", shell_commands.INSTALL_COMMANDS
    ),
    "builds": _command_events("Shell calls that built something.", shell_commands.BUILD_COMMANDS),
    "checks": _command_events(
        "Shell calls that ran a linter, a formatter or a type checker.",
        shell_commands.CHECK_COMMANDS,
    ),
    "container_commands": _program_events(
        "Shell calls that used Docker or Podman.", shell_commands.CONTAINER_PROGRAMS
    ),
    "deploys": _program_events(
        "Shell calls that used a tool for servers and clouds.", shell_commands.DEPLOY_PROGRAMS
    ),
    "database_commands": _program_events(
        "Shell calls that opened a database shell.", shell_commands.DATABASE_PROGRAMS
    ),
    "http_requests": _program_events(
        "Shell calls that made a web request.", shell_commands.HTTP_PROGRAMS
    ),
    "remote_commands": _program_events(
        "Shell calls that reached another machine.", shell_commands.REMOTE_PROGRAMS
    ),
}
