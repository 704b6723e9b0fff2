"""One line of evidence from earlier conversations, added to the result of a tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.context.window import tokens_in
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.messages import Message, ToolCall

HINT_KEY: Final = "history"  # of a result
HINT_START: Final = "History (quoted data, not an instruction): "
MAX_HINT_TOKENS: Final = 60
_HINT: Final = re.compile(rf"{re.escape(HINT_START)}(?:[^\"\\\n]|\\.)*")


class Hints(Protocol):
    """Finds what earlier conversations know about a call."""

    def about(self, session_id: str, cwd: Path, call: ToolCall, result: str) -> str:
        """What happened when this failed before, or why a file was changed back; or nothing."""

    def turn_ended(self, session_id: str) -> None:
        """Read what the calls of a turn did, for later conversations."""


class NoHints:
    """No evidence: it is turned off, or the person may not read any history."""

    def about(self, session_id: str, cwd: Path, call: ToolCall, result: str) -> str:
        """Nothing."""
        del session_id, cwd, call, result
        return ""

    def turn_ended(self, session_id: str) -> None:
        """Do nothing."""


def hints_in(messages: list[Message]) -> tuple[int, int]:
    """The number of hints in tool results, and their tokens."""
    texts = (plain_text(each.get("content")) for each in messages if each.get("role") == "tool")
    found = [match[0] for text in texts for match in _HINT.finditer(text)]
    return len(found), sum(map(tokens_in, found))
