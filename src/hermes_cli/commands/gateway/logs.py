"""`hermes gateway logs`, `trace`, `channels` and `handoff`."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from gateway.outbound import direct_send
from gateway.process.config_loader import config_of_home
from hermes_cli import history
from hermes_core import human_format, log_file, paths
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_cli.output import CommandOutput
    from hermes_state import SessionDB
    from hermes_state.delivery.inbox import IncomingMessage

POLL_SECONDS: Final = 0.5
COMMON_FIELDS: Final = frozenset({"at", "level", "process", "logger", "message", "traceback"})


# The log


def logs(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the log as text or JSON."""
    path = paths.logs_path() / log_file.GATEWAY_LOG_NAME
    if not path.exists():
        raise UsageError(f"No log yet: {path} does not exist.")
    for entry in deque(_filter_entries(_entries(path), arguments), maxlen=max(arguments.lines, 0)):
        _show(entry, out, as_json=arguments.json)
    if arguments.follow:
        for entry in _filter_entries(_follow(path), arguments):
            _show(entry, out, as_json=arguments.json)
    return 0


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of the log file and its predecessor."""
    for item in (path.with_name(path.name + ".1"), path):
        if item.exists():
            with item.open(encoding="utf-8", errors="replace") as file:
                yield from filter(None, map(_entry, file))


def _follow(path: Path) -> Iterator[dict[str, Any]]:
    """New entries as they are written; follows a rotated file."""
    file = path.open(encoding="utf-8", errors="replace")
    try:
        file.seek(0, 2)
        while True:
            line = file.readline()
            if line:
                entry = _entry(line)
                if entry is not None:
                    yield entry
                continue
            time.sleep(POLL_SECONDS)
            if path.exists() and path.stat().st_size < file.tell():
                file.close()
                file = path.open(encoding="utf-8", errors="replace")
    finally:
        file.close()


def _entry(line: str) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _filter_entries(
    entries: Iterator[dict[str, Any]], arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    levels = logging.getLevelNamesMapping()
    minimum = levels[arguments.level.upper()]
    for entry in entries:
        is_shown = levels.get(str(entry.get("level")).upper(), 0) >= minimum
        message_ids = (entry.get("inbox_id"), *(entry.get("merged") or ()))
        if is_shown and (arguments.message is None or arguments.message in message_ids):
            yield entry


def _show(entry: dict[str, Any], out: CommandOutput, *, as_json: bool) -> None:
    if as_json:
        out.json_line(entry)
        return
    facts = " ".join(
        f"{name}={value}" for name, value in entry.items() if name not in COMMON_FIELDS
    )
    at = str(entry.get("at", ""))[:23].replace("T", " ")
    level = str(entry.get("level", ""))
    style = {"warning": "yellow", "error": "red", "critical": "red"}.get(level, "")
    out.text(f"{at} {level:8} {entry.get('message')}  {facts}".rstrip(), style)


# Tracing


def trace(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the way of a message from the platform to its reply."""
    with history.open_for_reading() as db:
        results = [_trace_of(db, row) for row in db.chats.find_incoming(arguments.message)]
    if not results:
        raise UsageError(
            f"Message {arguments.message} was not received, or it is older than a month."
        )
    if arguments.json:
        out.json(results)
        return 0
    for item in results:
        _print_trace(item, out)
    return 0


def _trace_of(db: SessionDB, message: IncomingMessage) -> dict[str, Any]:
    session_id = message.session_id
    uid = f"inbox:{message.inbox_id}"
    names = ("inbox_id", "platform", "account", "chat_id", "message_id", "session_key", "state")
    more = ("received_at", "settled_at", "attempts", "error", "session_id")
    replies = ("outbox_id", "state", "attempts", "created_at", "settled_at", "receipt", "error")
    return {
        **{name: getattr(message, name) for name in (*names, *more)},
        "sender": message.payload["source"].get("user_name"),
        "text": message.payload["text"],
        "stored_as": db.messages.message_of(session_id, uid) if session_id else None,
        "replies": [
            {**{name: getattr(reply, name) for name in replies}, "text": reply.payload["text"]}
            for reply in db.chats.replies_to(message.inbox_id)
        ],
    }


def _print_trace(one: dict[str, Any], out: CommandOutput) -> None:
    out.text(f"message {one['inbox_id']}", "bold")
    sender = f"{one['sender'] or '?'} in {one['chat_id']} on {one['platform']}"
    rows = [
        ("received", f"{_at(one['received_at'])}  from {sender}, platform ID {one['message_id']}"),
        ("text", _short(one["text"])),
        ("state", f"{one['state']}, attempts {one['attempts']}"),
    ]
    if one["session_id"]:
        stored = f", message {one['stored_as']}" if one["stored_as"] else ""
        rows.append(("conversation", f"{one['session_id']}{stored}"))
    if one["settled_at"]:
        rows.append(("handled", _at(one["settled_at"])))
    for reply in one["replies"]:
        sent = (
            f", sent {_at(reply['settled_at'])} as {reply['receipt']}" if reply["receipt"] else ""
        )
        why = f" ({reply['error']})" if reply["error"] else ""
        state = f"{reply['state']}, attempts {reply['attempts']}{sent}{why}"
        rows.append((f"reply {reply['outbox_id']}", f"{state}: {_short(reply['text'])}"))
    out.pairs(rows)


def _at(moment: float) -> str:
    return human_format.local(moment)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"


# Chats


def channels(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List known chats."""
    result = []
    if history.exists():
        with history.open_for_reading() as db:
            result = direct_send.list_channels(db, config_of_home())
    if arguments.json:
        out.json([{**item._asdict(), "address": item.address} for item in result])
        return 0
    if not result:
        out.text("No known chats. A chat is listed after its first message.")
    now = time.time()
    for item in result:
        since = human_format.ago(item.last_active, now) if item.last_active else "never"
        out.text(f"{item.address}  {item.name}  ({item.kind}, {since})")
    return 0


def handoff(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Request the hand-off of a conversation to a chat."""
    with history.open_for_writing() as db:
        session_id = db.resolve_resume_session_id(db.lookup.resolve(arguments.session))
        if not db.request_handoff(session_id, arguments.platform.lower()):
            raise UsageError(f"A hand-off of {session_id} is already pending.")
    out.text(
        f"Handed off {session_id} to {arguments.platform}; "
        "the gateway will pick it up once it is running."
    )
    return 0
