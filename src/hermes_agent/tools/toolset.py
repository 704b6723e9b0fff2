"""The tools an agent has, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.tools.clarify import clarify_tool
from hermes_agent.tools.files import file_tools
from hermes_agent.tools.memory import memory_tool, session_search_tool
from hermes_agent.tools.patch import patch_tool
from hermes_agent.tools.search_files import search_tool
from hermes_agent.tools.terminal import terminal_tools

if TYPE_CHECKING:
    from hermes_agent.memory.files import MemoryFiles
    from hermes_agent.tools.base import Tool
    from hermes_agent.tools.jobs import Jobs
    from hermes_agent.tools.memory import SearchesHistory


def standard_tools(
    jobs: Jobs, memory: MemoryFiles, history: SearchesHistory | None = None
) -> list[Tool]:
    """Every tool; without a history, none that searches it."""
    found = [session_search_tool(history)] if history is not None else []
    return [
        *terminal_tools(jobs),
        *file_tools(),
        patch_tool(),
        search_tool(),
        memory_tool(memory),
        *found,
        clarify_tool(),
    ]
