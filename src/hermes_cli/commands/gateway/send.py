"""`hermes send`: send a message to a chat from a script."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.parser import add_json_option
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.delivery.outbox import StoredReply
    from hermes_state.store import SessionDB

DELIVERY_WAIT_SECONDS: Final = 30.0
EXAMPLES: Final = """\
examples:
  hermes send telegram "The backup is done."
  hermes send telegram:12345678 "Hello."
  hermes send "Family" "Dinner at eight." --file menu.pdf
  uptime | hermes send matrix:!room:example.org -

TARGET is PLATFORM:CHAT, PLATFORM:CHAT#THREAD, a platform with a home channel, or the name of a
chat (see `hermes gateway channels`). The gateway sends the message, now or after its next start.
"""


class NotSentError(HermesError):
    """The message was not sent."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("target", metavar="TARGET", help="chat to send to")
    parser.add_argument("text", metavar="TEXT", nargs="?", default="-",
                        help="message text (default: -, standard input)")  # fmt: skip
    parser.add_argument("--file", type=Path, metavar="FILE", help="attach a file")
    parser.add_argument("--key", default="", metavar="KEY",
                        help="idempotency key: duplicates are sent only once")  # fmt: skip
    parser.add_argument("--no-wait", action="store_true", help="do not wait for delivery")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Send the message."""
    from gateway import status  # noqa: PLC0415 - slow to load
    from gateway.outbound import direct_send  # noqa: PLC0415 - slow to load
    from gateway.process.config_loader import config_of_home  # noqa: PLC0415 - as above

    file = arguments.file
    if file is not None and not file.is_file():
        raise UsageError(f"{file} is not a file.")
    text = _text(arguments.text, has_file=file is not None)
    with history.open_for_writing() as db:
        channel = direct_send.find_channel(db, config_of_home(), arguments.target)
        numbers = direct_send.send(db, channel, text, arguments.key, file)
        is_waiting = not arguments.no_wait and status.running_pid() is not None
        states = _states(db, numbers, DELIVERY_WAIT_SECONDS if is_waiting else 0.0, out)
    return _report(out, channel.address, states, as_json=arguments.json)


def _text(written: str, *, has_file: bool) -> str:
    if written != "-" or (has_file and sys.stdin.isatty()):
        return "" if written == "-" else written
    return sys.stdin.read()


def _states(
    db: SessionDB, numbers: list[int], seconds: float, out: CommandOutput
) -> list[StoredReply]:
    """The parts, after waiting for their delivery."""
    deadline = time.monotonic() + seconds
    while True:
        replies = [reply for number in numbers if (reply := db.chats.reply(number))]
        is_open = any(reply.state in {"waiting", "sending"} for reply in replies)
        if not is_open or time.monotonic() >= deadline:
            out.progress("")
            return replies
        out.progress("Sending…")
        time.sleep(0.1)


def _report(out: CommandOutput, address: str, replies: list[StoredReply], *, as_json: bool) -> int:
    states = {reply.state for reply in replies}
    state = next(iter(states)) if len(states) == 1 else "partly sent"
    error = next((reply.error for reply in replies if reply.error), None)
    if as_json:
        parts = [
            {"outbox_id": reply.outbox_id, "state": reply.state, "receipt": reply.receipt}
            for reply in replies
        ]
        out.json({"target": address, "state": state, "error": error, "parts": parts})
        return 1 if state == "failed" else 0
    if state == "failed":
        raise NotSentError(f"Sending to {address} failed: {error}")
    if state == "sent":
        out.text(f"Sent to {address}.")
    else:
        why = f" ({error})" if error else ""
        out.text(f"Queued for {address}; the gateway sends it once it is running{why}.")
    return 0
