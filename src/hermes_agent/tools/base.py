"""A tool: its name, what the model is told about it, and what it does.

A tool's failure is an answer to the model, never an exception: `run` gives back text,
most often JSON, and says in it what went wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_agent.turn_control import Cancel


class Prompter(Protocol):
    """Somebody who can be asked: a person in a terminal, a chat, a web page."""

    def approve(self, request: ApprovalRequest) -> str:
        """Whether a command may run: `once`, `session`, `always` or `deny`."""

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model; empty when there is none."""


class ApprovalRequest(NamedTuple):
    """A question whether something may be done."""

    session_id: str
    turn_id: str
    command: str
    description: str
    pattern_keys: tuple[str, ...]
    may_always: bool = True


class ToolContext(NamedTuple):
    """What a tool is given besides its arguments."""

    session_id: str
    turn_id: str
    call_id: str
    cwd: Path
    cancel: Cancel
    asks: Prompter
    show: Callable[[str], None]  # output while it runs, for people


class Tool(NamedTuple):
    """Something the agent can do."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], ToolContext], str]
    is_parallel: bool = True  # whether several calls may run at the same time

    def schema(self) -> dict[str, Any]:
        """What the model is told about it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


def success(**facts: Any) -> str:
    """A tool's answer as JSON; success is `error: null`."""
    facts.setdefault("error", None)
    return json.dumps(facts, ensure_ascii=False)


def failure(message: str, **facts: Any) -> str:
    """A tool's failure as JSON."""
    return json.dumps({**facts, "error": message}, ensure_ascii=False)


UNAVAILABLE = "unavailable"  # the answer of a prompter that can ask nobody


class NonInteractivePrompter:
    """A conversation without a person: nothing risky is allowed, no question is answered."""

    def approve(self, request: ApprovalRequest) -> str:
        """Report that nobody can be asked."""
        del request
        return UNAVAILABLE

    def clarify(self, question: str, choices: list[str]) -> str:
        """No answer."""
        del question, choices
        return ""
