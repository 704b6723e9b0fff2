"""The tools an agent has, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.tools.base import (
    Tool,
    ToolError,
    failure,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)
from hermes_agent.tools.files import SeenFiles, file_tools
from hermes_agent.tools.history import history_tools
from hermes_agent.tools.memory import memory_tool
from hermes_agent.tools.patch import patch_tool
from hermes_agent.tools.search_files import search_tool
from hermes_agent.tools.terminal import terminal_tools
from hermes_agent.tools.todo import todo_tool
from hermes_core.media_store import of_home

if TYPE_CHECKING:
    from hermes_agent.memory.facts import AgentMemory
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.history import SearchesHistory
    from hermes_agent.tools.jobs import Jobs
    from hermes_agent.tools.terminal import LimitsCommands
    from hermes_core.json_values import JsonObject
    from hermes_core.media_store import MediaStore

MAX_CHOICES = 10


def clarify_tool() -> Tool:
    """The tool."""
    return Tool(
        "clarify",
        "Ask the user a question.",
        schema(
            "question",
            question=parameter("string"),
            choices=parameter("array", items={"type": "string"}),
        ),
        reporting_errors(_clarify),
    )


def _clarify(arguments: JsonObject, context: ToolContext) -> str:
    question = text(arguments, "question").strip()
    given = arguments.get("choices") or []
    if not question:
        raise ToolError("`question` is empty.")
    choices = [item for item in given if isinstance(item, str)] if isinstance(given, list) else []
    if not isinstance(given, list) or len(choices) < len(given):
        raise ToolError("`choices` must be a list of strings.")
    reply = context.prompter.clarify(question, choices[:MAX_CHOICES])
    if not reply.strip():
        return failure("No answer was given. Decide yourself and state your assumption.")
    return success(answer=reply)


def standard_tools(
    jobs: Jobs,
    limits: LimitsCommands,
    memory: AgentMemory | None,
    history: SearchesHistory | None = None,
    media: MediaStore | None = None,
) -> list[Tool]:
    """Every tool; without a memory or a history, none that uses it. *media* keeps images."""
    seen = SeenFiles()
    results = history_tools(history) if history is not None else []
    return [
        *terminal_tools(jobs, limits),
        *file_tools(limits, media or of_home(), seen, jobs.kept_output),
        patch_tool(limits, seen),
        search_tool(jobs, limits),
        *([] if memory is None else [memory_tool(memory)]),
        *results,
        clarify_tool(),
        todo_tool(),
    ]
