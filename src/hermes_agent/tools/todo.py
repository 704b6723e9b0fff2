"""The tool `todo`: a list of steps that the model keeps and the user sees.

The list is that of the last call, so the history is its storage: it survives restarts, and a
branch or an undo has the list of that time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.messages import calls_in
from hermes_agent.tools.base import Tool, ToolError, parameter, reporting_errors, schema, success

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_agent.messages import Message
    from hermes_agent.tools.base import ToolContext
    from hermes_core.json_values import JsonObject, JsonValue

TODO_TOOL: Final = "todo"
PENDING, ACTIVE, DONE = STATUSES = ("pending", "active", "done")
STATE_SIGNS: Final = {PENDING: "☐", ACTIVE: "▶", DONE: "☑"}
MARKS: Final = {"[": PENDING, "[ ": PENDING, "[>": ACTIVE, "[x": DONE, "[X": DONE}
MAX_ITEMS: Final = 50
MAX_CHARACTERS: Final = 300


class TodoItem(NamedTuple):
    """A step and its status."""

    text: str
    status: str

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""
        return self.status != DONE


def todo_tool() -> Tool:
    """The tool."""
    return Tool(
        TODO_TOOL,
        "Keep the steps of a longer task; the user sees them. Pass all of them each time: "
        "'[x] done', '[>] now', '[ ] later'.",
        schema("items", items=parameter("array", items={"type": "string"})),
        reporting_errors(_set_items),
    )


def _set_items(arguments: JsonObject, _context: ToolContext) -> str:
    given = arguments.get("items")
    if not isinstance(given, list):
        raise ToolError("`items` must be a list.")
    if len(given) > MAX_ITEMS:
        raise ToolError(f"At most {MAX_ITEMS} items; combine some.")
    items = [_parse_item(each) for each in given]
    return success(todo=format_items(items))


def _parse_item(given: JsonValue) -> TodoItem:
    if isinstance(given, str):
        mark, _, rest = given.partition("] ")
        marked = MARKS.get(mark.strip())
        given = {"text": given} if marked is None else {"text": rest, "status": marked}
    text = given.get("text") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(text, str) or not text.strip():
        raise ToolError("Each item needs a `text`.")
    status = given.get("status") or PENDING
    if status not in STATUSES:
        raise ToolError(f"`status` must be one of {', '.join(STATUSES)}.")
    return TodoItem(" ".join(text.split())[:MAX_CHARACTERS], str(status))


def parse_call(arguments: str) -> list[TodoItem] | None:
    """The list of a call; None if its arguments are not valid."""
    try:
        document: JsonValue = json.loads(arguments)
        items = document.get("items") if isinstance(document, dict) else None
        return [_parse_item(each) for each in items] if isinstance(items, list) else None
    except (ValueError, ToolError):
        return None


def current_items(messages: Sequence[Message]) -> list[TodoItem]:
    """The list of the last valid call in a conversation."""
    for message in reversed(messages):
        for name, arguments in reversed(list(calls_in(message))):
            items = parse_call(arguments) if name == TODO_TOOL else None
            if items is not None:
                return items
    return []


def format_items(items: Sequence[TodoItem]) -> str:
    """The list for a person, one item per line."""
    return "\n".join(f"{STATE_SIGNS[item.status]} {item.text}" for item in items)
