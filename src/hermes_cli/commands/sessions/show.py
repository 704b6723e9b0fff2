"""`hermes sessions show` and `tail`: reading one conversation."""

from __future__ import annotations

import time
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions import transcript
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import Output
    from hermes_state import SessionDB

POLL_SECONDS = 0.3
SESSION_FIELDS = (
    "id", "title", "source", "model", "started_at", "ended_at", "end_reason", "message_count",
    "tool_call_count", "input_tokens", "output_tokens", "estimated_cost_usd", "cwd",
    "parent_session_id",
)  # fmt: skip


class Reading:
    """The messages to show, and a count of those that are not."""

    def __init__(self, db: SessionDB, session_ids: list[str], *, inactive: bool) -> None:
        self._messages = chain.from_iterable(
            db.iter_messages(one, include_inactive=True) for one in session_ids
        )
        self._inactive = inactive
        self.left_out = 0

    def __iter__(self) -> Iterator[transcript.Message]:
        for message in self._messages:
            if self._inactive or transcript.is_live(message):
                yield message
            else:
                self.left_out += 1


def show(arguments: argparse.Namespace, out: Output) -> int:
    """The whole conversation."""
    with history.reading() as db:
        session_id = db.resolve(arguments.id)
        session = db.get_session(session_id) or {"id": session_id}
        messages = Reading(db, db.conversation_rows(session_id), inactive=arguments.inactive)
        if arguments.json:
            head = {"session": {key: session.get(key) for key in SESSION_FIELDS}}
            out.json_stream(head, "messages", map(transcript.public, messages))
            return 0
        print_heading(session, out)
        for message in messages:
            transcript.print_message(out, message, full=arguments.full)
        if messages.left_out:
            left_out = human_format.plural(messages.left_out, "undone or compacted message")
            out.text(f"{left_out} not shown (--inactive shows them)", "dim")
    return 0


def print_heading(session: history.Row, out: Output) -> None:
    """What the conversation is."""
    out.text(str(session.get("title") or session["id"]), "bold")
    facts = [
        ("id", str(session["id"])),
        ("source", str(session.get("source") or "")),
        ("model", str(session.get("model") or "")),
        ("folder", str(session.get("cwd") or "")),
        ("started", human_format.local(session.get("started_at"))),
        ("state", history.state(session)),
    ]
    out.pairs([(name, value) for name, value in facts if value])
    out.text()


def tail(arguments: argparse.Namespace, out: Output) -> int:
    """The last messages; with --follow, every new one as it is stored."""
    with history.reading() as db:
        session_id = db.get_compression_tip(db.resolve(arguments.id))
        messages = Reading(db, [session_id], inactive=False)
        last_id = 0
        ending: deque[transcript.Message] = deque(maxlen=arguments.count)
        for message in messages:
            last_id = message["id"]
            ending.append(message)
        for message in ending:
            _print_tailed(message, arguments, out)
        while arguments.follow:
            out.flush()
            time.sleep(POLL_SECONDS)
            for message in db.tail_messages(session_id, last_id):
                last_id = message["id"]
                _print_tailed(message, arguments, out)
    return 0


def _print_tailed(message: transcript.Message, arguments: argparse.Namespace, out: Output) -> None:
    if arguments.json:
        out.json_line(transcript.public(message))
    else:
        transcript.print_message(out, message, full=arguments.full)
