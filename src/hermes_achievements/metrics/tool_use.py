"""Metrics of tool calls, by the operation of the tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import tool_kinds
from hermes_achievements.classification.shell_commands import BACKGROUND_LABEL
from hermes_achievements.metrics.facts import CALLS_FIELD

if TYPE_CHECKING:
    from hermes_achievements.metrics.facts import Fact
    from hermes_achievements.metrics.session_view import Events, SessionView

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


def shell_commands(session: SessionView) -> Events:
    """Shell calls."""
    return session.events_of(tool_kinds.SHELL)


def background_jobs(session: SessionView) -> Events:
    """Shell calls that were started in the background."""
    return [
        (call.fact, 1)
        for call in session.calls_by_operation.get(tool_kinds.SHELL, ())
        if BACKGROUND_LABEL in call.details
    ]


def files_read(session: SessionView) -> Events:
    """Calls that read a file."""
    return session.events_of(tool_kinds.READ)


def files_written(session: SessionView) -> Events:
    """Calls that wrote a whole file."""
    return session.events_of(tool_kinds.WRITE)


def files_edited(session: SessionView) -> Events:
    """Calls that changed a part of a file."""
    return session.events_of(tool_kinds.EDIT)


def file_searches(session: SessionView) -> Events:
    """Calls that searched in files."""
    return session.events_of(tool_kinds.FIND)


def files_touched(session: SessionView) -> Events:
    """Different files written or edited, counted once in each session."""
    return [(fact, 1) for fact in session.first_changes.values()]


def languages_in_session(session: SessionView) -> Events:
    """Different kinds of files written or edited, counted once in each session."""
    kinds: dict[str, Fact] = {}
    for file, fact in session.first_changes.items():
        kinds.setdefault(file.partition(":")[0], fact)
    return [(fact, 1) for kind, fact in kinds.items() if kind]


def web_searches(session: SessionView) -> Events:
    """Searches of the web."""
    return session.events_of(tool_kinds.WEB_SEARCH)


def pages_read(session: SessionView) -> Events:
    """Web pages fetched and read."""
    return session.events_of(tool_kinds.PAGE)


def browser_steps(session: SessionView) -> Events:
    """Steps taken in a browser."""
    return session.events_of(tool_kinds.BROWSER)


def delegations(session: SessionView) -> Events:
    """Tasks handed to sub-agents."""
    return [
        (call.fact, int(call.details[0]) if call.details else 1)
        for call in session.calls_by_operation.get(tool_kinds.DELEGATE, ())
    ]


def jobs_scheduled(session: SessionView) -> Events:
    """Jobs put on the schedule."""
    return session.action_events(tool_kinds.SCHEDULE, SCHEDULE_WRITE_ACTIONS)


def memories_saved(session: SessionView) -> Events:
    """Entries written to memory; lookups do not count."""
    return session.action_events(tool_kinds.MEMORY, MEMORY_WRITE_ACTIONS)


def history_searches(session: SessionView) -> Events:
    """Searches of past conversations by the agent."""
    return session.events_of(tool_kinds.RECALL)


def images_made(session: SessionView) -> Events:
    """Pictures generated."""
    return session.events_of(tool_kinds.DRAW)


def images_seen(session: SessionView) -> Events:
    """Pictures viewed."""
    return session.events_of(tool_kinds.SEE)


def voices_made(session: SessionView) -> Events:
    """Texts spoken aloud."""
    return session.events_of(tool_kinds.SPEAK)


def code_runs(session: SessionView) -> Events:
    """Programs written by the agent and run immediately."""
    return session.events_of(tool_kinds.CODE)


def skills_used(session: SessionView) -> Events:
    """Skills viewed."""
    return session.events_of(tool_kinds.SKILL)


def skills_written(session: SessionView) -> Events:
    """Skills created or improved."""
    return session.action_events(tool_kinds.SKILL_WRITE, SKILL_WRITE_ACTIONS)


def plans(session: SessionView) -> Events:
    """Calls of the todo list."""
    return session.events_of(tool_kinds.PLAN)


def questions_asked(session: SessionView) -> Events:
    """Questions the agent asked."""
    return session.events_of(tool_kinds.ASK)


def mcp_calls(session: SessionView) -> Events:
    """Calls of tools that an MCP server offers."""
    return session.events_of(tool_kinds.MCP)
