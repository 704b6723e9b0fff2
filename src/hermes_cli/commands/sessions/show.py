"""`hermes sessions show` and `tail`: print one conversation."""

from __future__ import annotations

import time
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

from hermes_cli import history
from hermes_core import human_format
from hermes_core.human_format import local
from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_state import SessionDB

Message = dict[str, Any]

FOLD_LINES = 8
FOLD_CHARACTERS = 1200
ARGUMENT_CELLS = 100
_HEADING_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}
MESSAGE_FIELDS = (
    "id", "role", "content", "tool_calls", "tool_name", "tool_call_id", "timestamp", "active",
    "compacted", "finish_reason",
)  # fmt: skip


def print_message(out: CommandOutput, message: Message, *, full: bool = False) -> None:
    """Print a message under its heading, followed by an empty line."""
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


def public_fields(message: Message) -> Message:
    """The documented fields of a message."""
    return {key: message.get(key) for key in MESSAGE_FIELDS}


def is_active(message: Message) -> bool:
    """Whether the message is part of the current conversation, not undone."""
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
    """Shorten a long text, and name the number of omitted characters."""
    lines = text.splitlines()
    result = "\n".join(lines[:FOLD_LINES])[:FOLD_CHARACTERS]
    if len(result) >= len(text.rstrip()):
        return text
    left_out = len(text) - len(result)
    return f"{result}\n… {left_out:,} more characters (use --full)"


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
    elif not is_active(message):
        marks.append("undone")
    if message.get("finish_reason") == "interrupted":
        marks.append("interrupted")
    return marks


POLL_SECONDS = 0.3
SESSION_FIELDS = (
    "id", "title", "source", "model", "started_at", "ended_at", "end_reason", "message_count",
    "tool_call_count", "input_tokens", "output_tokens", "estimated_cost_usd", "cwd",
    "parent_session_id",
)  # fmt: skip


class TranscriptReader:
    """Iterates over the visible messages and counts the others."""

    def __init__(self, db: SessionDB, session_ids: list[str], *, inactive: bool) -> None:
        self._messages = chain.from_iterable(
            db.messages.iter_messages(session_id, include_inactive=True)
            for session_id in session_ids
        )
        self._inactive = inactive
        self.left_out = 0

    def __iter__(self) -> Iterator[Message]:
        for message in self._messages:
            if self._inactive or is_active(message):
                yield message
            else:
                self.left_out += 1


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the conversation."""
    with history.open_for_reading() as db:
        session_id = db.lookup.resolve(arguments.id)
        session = db.get_session(session_id) or {"id": session_id}
        messages = TranscriptReader(
            db, db.lookup.conversation_rows(session_id), inactive=arguments.inactive
        )
        if arguments.json:
            head = {"session": {key: session.get(key) for key in SESSION_FIELDS}}
            out.json_stream(head, "messages", map(public_fields, messages))
            return 0
        print_heading(session, out)
        for message in messages:
            print_message(out, message, full=arguments.full)
        if messages.left_out:
            left_out = human_format.plural(messages.left_out, "undone or compacted message")
            out.text(f"{left_out} not shown (use --inactive)", "dim")
    return 0


def print_heading(session: history.Row, out: CommandOutput) -> None:
    """Print the metadata of the conversation."""
    out.text(str(session.get("title") or session["id"]), "bold")
    facts = [
        ("id", str(session["id"])),
        ("source", str(session.get("source") or "")),
        ("model", str(session.get("model") or "")),
        ("folder", str(session.get("cwd") or "")),
        ("started", human_format.local(session.get("started_at"))),
        ("state", history.state_text(session)),
    ]
    out.pairs([(name, value) for name, value in facts if value])
    out.text()


def tail(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the last messages; with --follow, new ones as they are stored."""
    with history.open_for_reading() as db:
        session_id = db.get_compression_tip(db.lookup.resolve(arguments.id))
        messages = TranscriptReader(db, [session_id], inactive=False)
        last_id = 0
        ending: deque[Message] = deque(maxlen=arguments.count)
        for message in messages:
            last_id = message["id"]
            ending.append(message)
        for message in ending:
            _print_tailed(message, arguments, out)
        while arguments.follow:
            out.flush()
            time.sleep(POLL_SECONDS)
            for message in db.messages.tail_messages(session_id, last_id):
                last_id = message["id"]
                _print_tailed(message, arguments, out)
    return 0


def _print_tailed(message: Message, arguments: argparse.Namespace, out: CommandOutput) -> None:
    if arguments.json:
        out.json_line(public_fields(message))
    else:
        print_message(out, message, full=arguments.full)
