"""What the agent did: its tool calls, by what the tools do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import tool_kinds
from hermes_achievements.classification.shell_commands import BACKGROUND
from hermes_achievements.metrics.facts import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.metrics.facts import Fact
    from hermes_achievements.metrics.session_view import Events, SessionFacts

MANY_AT_ONCE: Final = 3
MEMORY_WRITES: Final = frozenset({"add", "replace", "remember", "write", "save", "append"})
SKILL_WRITES: Final = frozenset({"create", "edit", "patch", "write_file", "update", "add"})
SCHEDULE_WRITES: Final = frozenset({"create", "add", "schedule"})


def tool_calls(s: SessionFacts) -> Events:
    """Tool calls, of the agent and of its sub-agents."""
    return [(call.fact, 1) for call in s.calls]


def parallel_batches(s: SessionFacts) -> Events:
    """Messages that called three tools or more at once."""
    return [(fact, 1) for fact in s.facts if fact[2] == "a" and len(fact[CALLS]) >= MANY_AT_ONCE]


def tools_in_session(s: SessionFacts) -> Events:
    """Different tools, counted once in each session."""
    return _first_of_each((call.fact, call.tool) for call in s.calls)


def shell_commands(s: SessionFacts) -> Events:
    """Calls of the shell."""
    return s.used(tool_kinds.SHELL)


def background_jobs(s: SessionFacts) -> Events:
    """Shell calls that were left to run in the background."""
    return [(call.fact, 1) for call in s.by.get(tool_kinds.SHELL, ()) if BACKGROUND in call.words]


def files_read(s: SessionFacts) -> Events:
    """Calls that read a file."""
    return s.used(tool_kinds.READ)


def files_written(s: SessionFacts) -> Events:
    """Calls that wrote a whole file."""
    return s.used(tool_kinds.WRITE)


def files_edited(s: SessionFacts) -> Events:
    """Calls that changed a part of a file."""
    return s.used(tool_kinds.EDIT)


def file_searches(s: SessionFacts) -> Events:
    """Calls that searched in files."""
    return s.used(tool_kinds.FIND)


def files_touched(s: SessionFacts) -> Events:
    """Different files written or edited, counted once in each session."""
    return _first_of_each(
        (call.fact, word)
        for call in s.calls
        if call.does in (tool_kinds.WRITE, tool_kinds.EDIT)
        for word in call.words
    )


def languages_in_session(s: SessionFacts) -> Events:
    """Different kinds of files written or edited, counted once in each session."""
    return _first_of_each(
        (call.fact, kind)
        for call in s.calls
        if call.does in (tool_kinds.WRITE, tool_kinds.EDIT)
        for word in call.words
        if (kind := word.partition(":")[0])
    )


def web_searches(s: SessionFacts) -> Events:
    """Searches of the web."""
    return s.used(tool_kinds.WEB_SEARCH)


def pages_read(s: SessionFacts) -> Events:
    """Web pages fetched and read."""
    return s.used(tool_kinds.PAGE)


def browser_steps(s: SessionFacts) -> Events:
    """Steps taken in a browser."""
    return s.used(tool_kinds.BROWSER)


def delegations(s: SessionFacts) -> Events:
    """Tasks handed to sub-agents."""
    return [
        (call.fact, int(call.words[0]) if call.words else 1)
        for call in s.by.get(tool_kinds.DELEGATE, ())
    ]


def jobs_scheduled(s: SessionFacts) -> Events:
    """Jobs put on the schedule."""
    return s.acted(tool_kinds.SCHEDULE, SCHEDULE_WRITES)


def memories_saved(s: SessionFacts) -> Events:
    """Things written into memory; looking something up does not count."""
    return s.acted(tool_kinds.MEMORY, MEMORY_WRITES)


def history_searches(s: SessionFacts) -> Events:
    """Searches of past conversations by the agent."""
    return s.used(tool_kinds.RECALL)


def images_made(s: SessionFacts) -> Events:
    """Pictures drawn."""
    return s.used(tool_kinds.DRAW)


def images_seen(s: SessionFacts) -> Events:
    """Pictures looked at."""
    return s.used(tool_kinds.SEE)


def voices_made(s: SessionFacts) -> Events:
    """Texts spoken aloud."""
    return s.used(tool_kinds.SPEAK)


def code_runs(s: SessionFacts) -> Events:
    """Programs written by the agent and run at once."""
    return s.used(tool_kinds.CODE)


def skills_used(s: SessionFacts) -> Events:
    """Skills looked at."""
    return s.used(tool_kinds.SKILL)


def skills_written(s: SessionFacts) -> Events:
    """Skills created or improved."""
    return s.acted(tool_kinds.SKILL_WRITE, SKILL_WRITES)


def plans(s: SessionFacts) -> Events:
    """Calls of the to-do list."""
    return s.used(tool_kinds.PLAN)


def questions_asked(s: SessionFacts) -> Events:
    """Questions the agent asked back."""
    return s.used(tool_kinds.ASK)


def mcp_calls(s: SessionFacts) -> Events:
    """Calls of tools that an MCP server offers."""
    return s.used(tool_kinds.MCP)


def _first_of_each(found: Iterable[tuple[Fact, str]]) -> Events:
    seen: set[str] = set()
    events: Events = []
    for fact, value in found:
        if value not in seen:
            seen.add(value)
            events.append((fact, 1))
    return events
