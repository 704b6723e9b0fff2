"""A tool: its name, its description for the model, and its function.

A failure is a result for the model, never an exception: `run` returns text, most often JSON,
which states what went wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_agent.messages import ToolFunction, ToolSchema
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject


def unchanged_output(command: str, output: str, exit_code: int | None) -> str:
    """The output of a command where no plugin changes it."""
    del command, exit_code
    return output


class ToolContext(NamedTuple):
    """The circumstances of a call, besides its arguments."""

    session_id: str
    turn_id: str
    call_id: str
    cwd: Path
    cancel: Cancel
    prompter: Prompter
    show: Callable[[str], None]  # output while it runs, for people
    filter_output: Callable[[str, str, int | None], str] = unchanged_output  # of a command


def never_only_reads(arguments: JsonObject, context: ToolContext) -> bool:
    """Of a tool that may change something."""
    del arguments, context
    return False


def always_reads(arguments: JsonObject, context: ToolContext) -> bool:
    """Of a tool that changes nothing."""
    del arguments, context
    return True


class Tool(NamedTuple):
    """Something the agent can do."""

    name: str
    description: str
    parameters: JsonObject
    run: Callable[[JsonObject, ToolContext], str]
    # Whether a call is known to change nothing; adjacent calls of this kind run together.
    only_reads: Callable[[JsonObject, ToolContext], bool] = never_only_reads
    is_offered: Callable[[], bool] | None = None  # whether the model sees it now; None: always

    def schema(self) -> ToolSchema:
        """The schema for the model."""
        function: ToolFunction = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


def success(**facts: JsonData) -> str:
    """A result as JSON; success is `error: null`."""
    facts.setdefault("error", None)
    return json.dumps(facts, ensure_ascii=False)


def failure(message: str, **facts: JsonData) -> str:
    """A failure as JSON."""
    return json.dumps({**facts, "error": message}, ensure_ascii=False)


def error_in(result: str) -> str | None:
    """The error of a result; None if it is not a JSON object with one."""
    if '"error"' not in result:
        return None
    try:
        document = json.loads(result)
    except ValueError:
        return None
    error = document.get("error") if isinstance(document, dict) else None
    return None if not error else error if isinstance(error, str) else json.dumps(error)
