"""`hermes send`: a message to a chat, from a script."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_cli import history
from hermes_cli.parser import add_json
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output
    from hermes_state import SessionDB

WAIT_SECONDS: Final = 30.0
EXAMPLES: Final = """\
examples:
  hermes send telegram "The backup is done."
  hermes send telegram:12345678 "Hello."
  hermes send "Family" "Dinner at eight." --file menu.pdf
  uptime | hermes send matrix:!room:example.org -

TARGET is PLATFORM:CHAT, PLATFORM:CHAT#THREAD, a platform with a home channel, or the name of a
chat (`hermes gateway channels` lists them). The gateway sends it, now or when it runs again.
"""


class NotSentError(HermesError):
    """It was given up."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("target", metavar="TARGET", help="where to")
    parser.add_argument("text", metavar="TEXT", nargs="?", default="-",
                        help="what; - or nothing reads standard input")  # fmt: skip
    parser.add_argument("--file", type=Path, metavar="FILE", help="send a file along")
    parser.add_argument("--key", default="", metavar="KEY",
                        help="the same key again is the same message, sent once")  # fmt: skip
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is sent")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Send it."""
    from gateway import status  # noqa: PLC0415 - slow to load
    from gateway.outbound import direct_send  # noqa: PLC0415 - slow to load
    from gateway.process.config_loader import config_of_home  # noqa: PLC0415 - as above

    file = arguments.file
    if file is not None and not file.is_file():
        raise UsageError(f"{file} is no file")
    text = _text(arguments.text, has_file=file is not None)
    with history.writing() as db:
        channel = direct_send.find_channel(db, config_of_home(), arguments.target)
        numbers = direct_send.send(db, channel, text, arguments.key, file)
        is_waiting = not arguments.no_wait and status.running_pid() is not None
        states = _states(db, numbers, WAIT_SECONDS if is_waiting else 0.0, out)
    return _tell(out, channel.address, states, as_json=arguments.json)


def _text(written: str, *, has_file: bool) -> str:
    if written != "-" or (has_file and sys.stdin.isatty()):
        return "" if written == "-" else written
    return sys.stdin.read()


def _states(db: SessionDB, numbers: list[int], seconds: float, out: Output) -> list[dict[str, Any]]:
    """What became of each part, after waiting for them."""
    deadline = time.monotonic() + seconds
    while True:
        rows = [db.reply(one) or {} for one in numbers]
        is_open = any(one.get("state") in {"waiting", "sending"} for one in rows)
        if not is_open or time.monotonic() >= deadline:
            out.progress("")
            return rows
        out.progress("sending …")
        time.sleep(0.1)


def _tell(out: Output, address: str, rows: list[dict[str, Any]], *, as_json: bool) -> int:
    states = {str(one.get("state")) for one in rows}
    state = next(iter(states)) if len(states) == 1 else "partly sent"
    error = next((one["error"] for one in rows if one.get("error")), None)
    if as_json:
        parts = [
            {name: one.get(name) for name in ("outbox_id", "state", "receipt")} for one in rows
        ]
        out.json({"target": address, "state": state, "error": error, "parts": parts})
        return 1 if state == "failed" else 0
    if state == "failed":
        raise NotSentError(f"{address} did not take it: {error}")
    if state == "sent":
        out.text(f"Sent to {address}.")
    else:
        why = f" ({error})" if error else ""
        out.text(f"Kept for {address}; the gateway sends it as soon as it can{why}.")
    return 0
