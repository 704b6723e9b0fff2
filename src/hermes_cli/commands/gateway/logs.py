"""`hermes gateway logs`, `trace`, `channels` and `handoff`."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.outbound import direct_send
from gateway.process.config_loader import config_of_home
from hermes_cli import history
from hermes_cli.output import TableColumn
from hermes_conversation.handoff import hand_off
from hermes_core import human_format, log_file, paths
from hermes_core.errors import UsageError
from hermes_core.json_values import list_in

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_cli.output import CommandOutput
    from hermes_core.log_file import LogEntry
    from hermes_state.delivery.outbox import StoredReply
    from hermes_state.delivery.rows import FailedMessage, IncomingMessage
    from hermes_state.store import SessionDB


POLL_SECONDS: Final = 0.5


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


def _entries(path: Path) -> Iterator[LogEntry]:
    """The entries of the log file and its predecessor."""
    for item in (path.with_name(path.name + ".1"), path):
        if item.exists():
            with item.open(encoding="utf-8", errors="replace") as file:
                yield from filter(None, map(_entry, file))


def _follow(path: Path) -> Iterator[LogEntry]:
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


def _entry(line: str) -> LogEntry | None:
    try:
        return log_file.parse_line(line)
    except ValueError:
        return None


def _filter_entries(
    entries: Iterator[LogEntry], arguments: argparse.Namespace
) -> Iterator[LogEntry]:
    levels = logging.getLevelNamesMapping()
    minimum = levels[arguments.level.upper()]
    for entry in entries:
        is_shown = levels.get(entry.level.upper(), 0) >= minimum
        message_ids = (entry.facts.get("inbox_id"), *list_in(entry.facts, "merged"))
        if is_shown and (arguments.message is None or arguments.message in message_ids):
            yield entry


def _show(entry: LogEntry, out: CommandOutput, *, as_json: bool) -> None:
    if as_json:
        out.json_line(entry.fields)
        return
    facts = " ".join(f"{name}={value}" for name, value in entry.facts.items())
    at = entry.at[:23].replace("T", " ")
    style = {"warning": "yellow", "error": "red", "critical": "red"}.get(entry.level, "")
    out.text(f"{at} {entry.level:8} {entry.message}  {facts}".rstrip(), style)


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
        out.json([item.as_json() for item in results])
        return 0
    for item in results:
        _print_trace(item, out)
    return 0


class TracedReply(NamedTuple):
    """A reply to a message, and its delivery."""

    outbox_id: int
    state: str
    attempts: int
    created_at: float
    settled_at: float | None
    receipt: str | None
    error: str | None
    text: str


class TracedMessage(NamedTuple):
    """The way of a message from the platform to its replies."""

    inbox_id: int
    platform: str
    account: str
    chat_id: str
    message_id: str
    session_key: str
    state: str
    received_at: float
    settled_at: float | None
    attempts: int
    error: str | None
    session_id: str | None
    sender: str | None
    text: str
    stored_as: int | None
    replies: list[TracedReply]

    def as_json(self) -> dict[str, object]:
        """The documented JSON object."""
        return {**self._asdict(), "replies": [reply._asdict() for reply in self.replies]}


def _trace_of(db: SessionDB, message: IncomingMessage) -> TracedMessage:
    session_id = message.session_id
    uid = f"inbox:{message.inbox_id}"
    return TracedMessage(
        inbox_id=message.inbox_id,
        platform=message.platform,
        account=message.account,
        chat_id=message.chat_id,
        message_id=message.message_id,
        session_key=message.session_key,
        state=message.state,
        received_at=message.received_at,
        settled_at=message.settled_at,
        attempts=message.attempts,
        error=message.error,
        session_id=session_id,
        sender=message.payload["source"].get("user_name"),
        text=message.payload["text"],
        stored_as=db.messages.message_of(session_id, uid) if session_id else None,
        replies=[_traced_reply(reply) for reply in db.chats.replies_to(message.inbox_id)],
    )


def _traced_reply(reply: StoredReply) -> TracedReply:
    return TracedReply(
        outbox_id=reply.outbox_id,
        state=reply.state,
        attempts=reply.attempts,
        created_at=reply.created_at,
        settled_at=reply.settled_at,
        receipt=reply.receipt,
        error=reply.error,
        text=reply.payload["text"],
    )


def _print_trace(message: TracedMessage, out: CommandOutput) -> None:
    out.text(f"message {message.inbox_id}", "bold")
    sender = f"{message.sender or '?'} in {message.chat_id} on {message.platform}"
    received = f"{_at(message.received_at)}  from {sender}, platform ID {message.message_id}"
    rows = [
        ("received", received),
        ("text", _short(message.text)),
        ("state", f"{message.state}, attempts {message.attempts}"),
    ]
    if message.session_id:
        stored = f", message {message.stored_as}" if message.stored_as else ""
        rows.append(("conversation", f"{message.session_id}{stored}"))
    if message.settled_at:
        rows.append(("handled", _at(message.settled_at)))
    rows += [_reply_row(reply) for reply in message.replies]
    out.pairs(rows)


def _reply_row(reply: TracedReply) -> tuple[str, str]:
    sent = ""
    if reply.receipt and reply.settled_at is not None:
        sent = f", sent {_at(reply.settled_at)} as {reply.receipt}"
    why = f" ({reply.error})" if reply.error else ""
    state = f"{reply.state}, attempts {reply.attempts}{sent}{why}"
    return f"reply {reply.outbox_id}", f"{state}: {_short(reply.text)}"


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
        session_id = db.titles.resolve_resume_session_id(db.lookup.resolve(arguments.session))
        out.text(f"{session_id}: {hand_off(db, session_id, arguments.platform.lower())}")
    return 0


COLUMNS: Final = (
    TableColumn("number"),
    TableColumn("platform"),
    TableColumn("received"),
    TableColumn("error"),
)


def quarantine(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List the messages, or show, retry or delete one."""
    if (arguments.delete or arguments.retry) and arguments.message is None:
        raise UsageError("--delete and --retry require a message number.")
    if not history.exists():
        failed: list[FailedMessage] = []
    elif arguments.delete or arguments.retry:
        return (_delete if arguments.delete else _retry)(arguments.message, out)
    else:
        with history.open_for_reading() as db:
            failed = db.inbox.failed()
    if arguments.message is not None:
        failed = [message for message in failed if message.inbox_id == arguments.message]
        if not failed:
            raise UsageError(f"No message {arguments.message} in the quarantine.")
    if arguments.json:
        out.json([message._asdict() for message in failed])
    elif arguments.message is not None:
        _show_item(failed[0], out)
    elif failed:
        _list(failed, out)
    else:
        out.text("All messages were handled.")
    return 0


def _list(failed: list[FailedMessage], out: CommandOutput) -> None:
    now = time.time()
    rows = [
        (
            str(message.inbox_id),
            message.platform,
            human_format.ago(message.received_at, now),
            message.error or "",
        )
        for message in failed
    ]
    out.table(COLUMNS, rows)
    out.hint("`hermes gateway quarantine NUMBER` shows the content of one.")


def _show_item(message: FailedMessage, out: CommandOutput) -> None:
    out.text(f"{message.platform}, {human_format.local(message.received_at)}: {message.error}")
    out.text(message.content)


def _retry(number: int, out: CommandOutput) -> int:
    with history.open_for_writing() as db:
        is_waiting = db.inbox.retry_failed(number)
    if not is_waiting:
        raise UsageError(f"No message {number} in the quarantine that can be handled again.")
    out.text(f"Message {number} waits again; the gateway handles it.")
    return 0


def _delete(number: int, out: CommandOutput) -> int:
    with history.open_for_writing() as db:
        is_deleted = db.inbox.delete_failed(number)
    if not is_deleted:
        raise UsageError(f"No message {number} in the quarantine.")
    out.text(f"Message {number} deleted.")
    return 0
