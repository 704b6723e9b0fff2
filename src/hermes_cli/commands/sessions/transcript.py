"""A conversation as readable text: headings, times, tool calls in a line, long output folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_core.human_format import local
from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    from hermes_cli.output import Output

Message = dict[str, Any]

FOLD_LINES = 8
FOLD_CHARACTERS = 1200
ARGUMENT_CELLS = 100
_HEADING_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}
MESSAGE_FIELDS = (
    "id", "role", "content", "tool_calls", "tool_name", "tool_call_id", "timestamp", "active",
    "compacted", "finish_reason",
)  # fmt: skip


def print_message(out: Output, message: Message, *, full: bool = False) -> None:
    """One message under its heading, with an empty line after it."""
    role = str(message.get("role") or "?")
    marks = "".join(f" [{mark}]" for mark in _marks(message))
    heading = f"{role} {message['tool_name']}" if message.get("tool_name") else role
    style = _HEADING_STYLES.get(role, "bold")
    out.styled((one_line(heading), style), (f"  {local(message.get('timestamp'))}{marks}", "dim"))
    body = content_text(message.get("content"))
    if body:
        out.text(body if full or role != "tool" else fold(body))
    for call in message.get("tool_calls") or ():
        out.text(call_line(call, full=full), "yellow")
    out.text()


def public(message: Message) -> Message:
    """The fields of a message that programs may rely on."""
    return {key: message.get(key) for key in MESSAGE_FIELDS}


def is_live(message: Message) -> bool:
    """Whether the message is part of the conversation as it stands."""
    return bool(message.get("active", 1))


def content_text(content: object) -> str:
    """Stored content as text; parts that are not text are named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content.rstrip()
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_text, content)))
    return _part_text(content)


def fold(text: str) -> str:
    """The beginning of a long text, and how much was left out."""
    lines = text.splitlines()
    kept = "\n".join(lines[:FOLD_LINES])[:FOLD_CHARACTERS]
    if len(kept) >= len(text.rstrip()):
        return text
    left_out = len(text) - len(kept)
    return f"{kept}\n… {left_out:,} more characters (--full shows them)"


def call_line(call: object, *, full: bool = False) -> str:
    """A tool call in one line: name and arguments."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        function = call if isinstance(call, dict) else {}
    arguments = one_line(str(function.get("arguments") or ""))
    shown = arguments if full else fit(arguments, ARGUMENT_CELLS)
    return f"→ {function.get('name') or 'unnamed tool'}({shown})"


def _part_text(part: object) -> str:
    """One part of multimodal content."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return str(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = str(part.get("type") or "object")
    return f"[{kind.removesuffix('_url').removeprefix('input_')}]"


def _marks(message: Message) -> list[str]:
    marks = []
    if message.get("compacted"):
        marks.append("compacted")
    elif not is_live(message):
        marks.append("undone")
    if message.get("finish_reason") == "interrupted":
        marks.append("interrupted")
    return marks
