"""Tool results as models read them: plain text instead of JSON.

Results are stored as JSON, which front ends, statistics and plugins read. In a request it would
cost tokens for escapes, and models copy these into the arguments of the next call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_agent.messages import IMAGE_REFERENCE_START

if TYPE_CHECKING:
    from hermes_agent.messages import Message
    from hermes_core.json_values import JsonObject, JsonValue

ERROR: Final = "error"
# The fields that are what was asked for; the others are facts about it.
BODIES: Final = frozenset(
    {"output", "content", "text", "diff", "matches", "entries", "todo", "result"}
)


def with_plain_result(message: Message) -> Message:
    """The message; a result of our form as plain text, with a mark if it is a failure."""
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str):
        return message
    document = _result(content)
    if document is None:
        return message
    plain: Message = {**message, "content": _text_of(document)}
    if document[ERROR]:
        plain["is_error"] = True
    return plain


def _result(content: str) -> JsonObject | None:
    """A result of our form: an object with an error, which may be null, and without an image."""
    if not content.startswith("{") or f'"{ERROR}"' not in content:
        return None
    if IMAGE_REFERENCE_START in content:
        return None
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) and ERROR in document else None


def _text_of(document: JsonObject) -> str:
    """The error, then what was asked for, then the facts about it in one line."""
    error = document[ERROR]
    parts = [f"Error: {_shown(error)}"] if error else []
    facts = []
    for name, value in document.items():
        if name == ERROR or value is None or value is False:
            continue
        shown = _shown(value)
        if name in BODIES and not isinstance(value, int):
            parts += [shown] if value else []
        elif "\n" in shown:
            parts.append(f"{name}:\n{shown}")
        else:
            facts.append(f"{name}: {shown}")
    if not parts:
        return "\n".join(facts)
    return "\n".join([*parts, f"[{'; '.join(facts)}]"] if facts else parts)


def _shown(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if value and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(map(str, value))
    shown = json.dumps(value, ensure_ascii=False)
    if isinstance(value, list) and "\\n" in shown:  # objects with texts, such as reports
        objects = [item for item in value if isinstance(item, dict)]
        if len(objects) == len(value):
            return "\n\n".join(map(_fields_of, objects))
    return shown


def _fields_of(entry: JsonObject) -> str:
    """An object with a line for each field."""
    return "\n".join(
        f"{name}: {_shown(value)}" for name, value in entry.items() if value is not None
    )
