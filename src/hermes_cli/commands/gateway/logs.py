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

    from hermes_cli.output import Output
    from hermes_state import SessionDB

LOOK_SECONDS: Final = 0.5
USUAL: Final = frozenset({"at", "level", "process", "logger", "message", "traceback"})


# What it has done


def logs(arguments: argparse.Namespace, out: Output) -> int:
    """Show the log, for people or as it is written."""
    path = paths.logs_path() / log_file.GATEWAY
    if not path.exists():
        raise UsageError(f"there is no log yet: {path}")
    for entry in deque(_wanted(_entries(path), arguments), maxlen=max(arguments.lines, 0)):
        _show(entry, out, as_json=arguments.json)
    if arguments.follow:
        for entry in _wanted(_coming(path), arguments):
            _show(entry, out, as_json=arguments.json)
    return 0


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """What is in the file and in the one before it."""
    for one in (path.with_name(path.name + ".1"), path):
        if one.exists():
            with one.open(encoding="utf-8", errors="replace") as file:
                yield from filter(None, map(_entry, file))


def _coming(path: Path) -> Iterator[dict[str, Any]]:
    """What is written from now on; a file that was changed for a new one is followed."""
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
            time.sleep(LOOK_SECONDS)
            if path.exists() and path.stat().st_size < file.tell():
                file.close()
                file = path.open(encoding="utf-8", errors="replace")
    finally:
        file.close()


def _entry(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _wanted(
    entries: Iterator[dict[str, Any]], arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    levels = logging.getLevelNamesMapping()
    least = levels[arguments.level.upper()]
    for entry in entries:
        is_serious = levels.get(str(entry.get("level")).upper(), 0) >= least
        concerns = (entry.get("inbox_id"), *(entry.get("merged") or ()))
        if is_serious and (arguments.message is None or arguments.message in concerns):
            yield entry


def _show(entry: dict[str, Any], out: Output, *, as_json: bool) -> None:
    if as_json:
        out.json_line(entry)
        return
    facts = " ".join(f"{name}={value}" for name, value in entry.items() if name not in USUAL)
    at = str(entry.get("at", ""))[:23].replace("T", " ")
    level = str(entry.get("level", ""))
    style = {"warning": "yellow", "error": "red", "critical": "red"}.get(level, "")
    out.text(f"{at} {level:8} {entry.get('message')}  {facts}".rstrip(), style)


# What became of a message


def trace(arguments: argparse.Namespace, out: Output) -> int:
    """Follow a message from the platform to its reply."""
    with history.reading() as db:
        found = [_traced(db, row) for row in db.find_incoming(arguments.message)]
    if not found:
        raise UsageError(f"no message {arguments.message} came in, or it is older than a month")
    if arguments.json:
        out.json(found)
        return 0
    for one in found:
        _tell(one, out)
    return 0


def _traced(db: SessionDB, row: dict[str, Any]) -> dict[str, Any]:
    session_id = row["session_id"]
    uid = f"inbox:{row['inbox_id']}"
    names = ("inbox_id", "platform", "account", "chat_id", "message_id", "session_key", "state")
    more = ("received_at", "settled_at", "attempts", "error", "session_id")
    replies = ("outbox_id", "state", "attempts", "created_at", "settled_at", "receipt", "error")
    return {
        **{name: row[name] for name in (*names, *more)},
        "sender": row["payload"]["source"].get("user_name"),
        "text": row["payload"]["text"],
        "stored_as": db.message_of(session_id, uid) if session_id else None,
        "replies": [
            {**{name: one[name] for name in replies}, "text": one["payload"]["text"]}
            for one in db.replies_to(row["inbox_id"])
        ],
    }


def _tell(one: dict[str, Any], out: Output) -> None:
    out.text(f"message {one['inbox_id']}", "bold")
    sender = f"{one['sender'] or '?'} in {one['chat_id']} on {one['platform']}"
    rows = [
        ("received", f"{_at(one['received_at'])}  from {sender}, there {one['message_id']}"),
        ("says", _short(one["text"])),
        ("state", f"{one['state']}, attempts {one['attempts']}"),
    ]
    if one["session_id"]:
        place = f", message {one['stored_as']}" if one["stored_as"] else ""
        rows.append(("conversation", f"{one['session_id']}{place}"))
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


def channels(arguments: argparse.Namespace, out: Output) -> int:
    """List the chats that are known."""
    found = []
    if history.exists():
        with history.reading() as db:
            found = direct_send.list_channels(db, config_of_home())
    if arguments.json:
        out.json([{**one._asdict(), "address": one.address} for one in found])
        return 0
    if not found:
        out.text("No chat is known yet; they are listed once somebody has written.")
    now = time.time()
    for one in found:
        since = human_format.ago(one.last_active, now) if one.last_active else "never"
        out.text(f"{one.address}  {one.name}  ({one.kind}, {since})")
    return 0


def handoff(arguments: argparse.Namespace, out: Output) -> int:
    """Ask that a conversation goes on in a chat."""
    with history.writing() as db:
        session_id = db.resolve_resume_session_id(db.resolve(arguments.session))
        if not db.request_handoff(session_id, arguments.platform.lower()):
            raise UsageError(f"{session_id} is being handed over already")
    out.text(f"The gateway goes on with {session_id} on {arguments.platform}, as soon as it runs.")
    return 0
