"""`hermes sessions show` and `tail`: print one conversation."""

from __future__ import annotations

import time
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, TypedDict

from hermes_agent.events import END_MARKS
from hermes_cli import history
from hermes_core import human_format
from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.human_format import local
from hermes_core.messages import without_memory_blocks
from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_core.messages import Content, ToolCallDict
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

FOLD_LINES = 8
MESSAGES_AROUND = 7  # with --around
FOLD_CHARACTERS = 1200
ARGUMENT_CELLS = 100
_HEADING_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}


class PublicMessage(TypedDict):
    """A message in JSON output."""

    id: int
    role: str
    content: Content
    tool_calls: list[ToolCallDict] | str | None
    tool_name: str | None
    tool_call_id: str | None
    timestamp: float
    active: int | None
    compacted: int | None
    finish_reason: str | None


class PublicSession(TypedDict):
    """A conversation in JSON output."""

    id: str
    title: str | None
    source: str
    model: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    cwd: str | None
    parent_session_id: str | None


def print_message(out: CommandOutput, message: MessageRow, *, full: bool = False) -> None:
    """Print a message under its heading, followed by an empty line."""
    role = message.shown_role or "?"
    marks = "".join(f" [{mark}]" for mark in _marks(message))
    heading = f"{role} {message.tool_name}" if message.tool_name else role
    style = _HEADING_STYLES.get(role, "bold")
    out.styled((one_line(heading), style), (f"  {local(message.timestamp)}{marks}", "dim"))
    body = content_text(message.content)
    if body:
        out.text(body if full or role != "tool" else fold(body))
    for call in message.tool_calls or ():
        out.text(call_line(call, full=full), "yellow")
    out.text()


def public_message(message: MessageRow) -> PublicMessage:
    """The documented fields of a message."""
    return {
        "id": message.id,
        "role": message.role,
        "content": message.content,
        "tool_calls": message.tool_calls,
        "tool_name": message.tool_name,
        "tool_call_id": message.tool_call_id,
        "timestamp": message.timestamp,
        "active": message.active,
        "compacted": message.compacted,
        "finish_reason": message.finish_reason,
    }


def public_session(session: SessionRow) -> PublicSession:
    """The documented fields of a conversation."""
    return {
        "id": session.id,
        "title": session.title,
        "source": session.source,
        "model": session.model,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "estimated_cost_usd": session.estimated_cost_usd,
        "cwd": session.cwd,
        "parent_session_id": session.parent_session_id,
    }


def content_text(content: object) -> str:
    """Stored content as text; parts that are not text are named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return without_memory_blocks(content).rstrip()
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
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = str(part.get("type") or "object")
    return f"[{kind.removesuffix('_url').removeprefix('input_')}]"


def _marks(message: MessageRow) -> list[str]:
    marks = []
    if message.compacted:
        marks.append("compacted")
    elif not message.is_live:
        marks.append("undone")
    if mark := END_MARKS.get(message.finish_reason or ""):
        marks.append(mark)
    if message.is_deleted:
        marks.append("deleted by sender")
    return marks


POLL_SECONDS = 0.3


class TranscriptReader:
    """Iterates over the visible messages and counts the others."""

    def __init__(self, db: SessionDB, session_ids: list[str], *, inactive: bool) -> None:
        self._messages = chain.from_iterable(
            db.messages.shown(session_id, with_undone=True) for session_id in session_ids
        )
        self._inactive = inactive
        self.left_out = 0

    def __iter__(self) -> Iterator[MessageRow]:
        for message in self._messages:
            if self._inactive or not message.is_undone:
                yield message
            else:
                self.left_out += 1


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the conversation."""
    with history.open_for_reading() as db:
        session_id = db.lookup.resolve(arguments.id)
        session = db.sessions.find(session_id)
        if session is None:
            raise SessionNotFoundError(f"session not found: {session_id}")
        if arguments.around is not None:
            return _show_around(db, session, arguments, out)
        messages = TranscriptReader(
            db, db.lookup.conversation_rows(session_id), inactive=arguments.inactive
        )
        if arguments.json:
            head = {"session": public_session(session)}
            out.json_stream(head, "messages", map(public_message, messages))
            return 0
        print_heading(session, out)
        for message in messages:
            print_message(out, message, full=arguments.full)
        if messages.left_out:
            left_out = human_format.plural(messages.left_out, "undone message")
            out.text(f"{left_out} not shown (use --inactive)", "dim")
    return 0


def _show_around(
    db: SessionDB, session: SessionRow, arguments: argparse.Namespace, out: CommandOutput
) -> int:
    page = db.transcripts.page(
        session.id, MESSAGES_AROUND, around=arguments.around, with_undone=arguments.inactive
    )
    if arguments.around not in {message.id for message in page.rows}:
        raise UsageError(f"message {arguments.around} is not in this conversation")
    if arguments.json:
        messages = [public_message(message) for message in page.rows]
        out.json({"session": public_session(session), "messages": messages})
        return 0
    print_heading(session, out)
    for message in page.rows:
        print_message(out, message, full=arguments.full)
    return 0


def print_heading(session: SessionRow, out: CommandOutput) -> None:
    """Print the metadata of the conversation."""
    out.text(session.title or session.id, "bold")
    facts = [
        ("id", session.id),
        ("source", session.source),
        ("model", session.model),
        ("folder", session.cwd),
        ("started", human_format.local(session.started_at)),
        ("state", history.state_text(session)),
    ]
    out.pairs([(name, value) for name, value in facts if value])
    out.text()


def tail(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the last messages; with --follow, new ones as they are stored."""
    with history.open_for_reading() as db:
        session_id = db.titles.get_compression_tip(db.lookup.resolve(arguments.id))
        messages = TranscriptReader(db, [session_id], inactive=False)
        last_id = 0
        ending: deque[MessageRow] = deque(maxlen=arguments.count)
        for message in messages:
            last_id = message.id
            ending.append(message)
        for message in ending:
            _print_tailed(message, arguments, out)
        while arguments.follow:
            out.flush()
            time.sleep(POLL_SECONDS)
            for message in db.messages.shown(session_id, after_id=last_id):
                last_id = message.id
                _print_tailed(message, arguments, out)
    return 0


def _print_tailed(message: MessageRow, arguments: argparse.Namespace, out: CommandOutput) -> None:
    if arguments.json:
        out.json_line(public_message(message))
    else:
        print_message(out, message, full=arguments.full)
