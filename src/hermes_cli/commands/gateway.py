"""`hermes gateway`: answer chats, always on."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from gateway import process, status
from gateway.platforms.local import socket_path
from hermes_cli import moments
from hermes_cli.commands import history
from hermes_cli.parser import add, add_json
from hermes_core import detached, paths
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

START_SECONDS = 20.0
STOP_SECONDS = 240.0
EXAMPLES = """\
examples:
  hermes gateway run            answer chats, until Ctrl-C
  hermes gateway start          the same in the background
  hermes gateway status         does it run, and does anything wait?
  hermes gateway stop           finish what runs, and end
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes gateway`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, purpose, action in ACTIONS:
        example = f"examples:\n  hermes gateway {name}\n"
        child = add(actions, name, purpose, examples=example, run=action)
        if action is tell:
            add_json(child)


def run(_wishes: argparse.Namespace, out: Output) -> int:
    """Answer chats."""
    out.note(f"Listening on {socket_path()}. Ctrl-C ends it.")
    ended = process.run()
    if ended is process.Ended.ANOTHER:
        raise UsageError(f"a gateway runs already (process {status.read_pid()})")
    if ended is process.Ended.RESTART:
        process.begin_anew()
    return 0


def start(_wishes: argparse.Namespace, out: Output) -> int:
    """Answer chats in the background."""
    if status.running_pid() is not None:
        raise UsageError(f"a gateway runs already (process {status.running_pid()})")
    log = paths.logs_path() / "gateway.log"
    process_id = detached.start(log, "gateway.process")
    deadline = time.monotonic() + START_SECONDS
    while not _is_up(process_id):
        if os.waitpid(process_id, os.WNOHANG)[0] or time.monotonic() > deadline:
            raise UsageError(f"it did not start; {log} says why")
        time.sleep(0.05)
    out.text(f"It runs (process {process_id}).")
    return 0


def _is_up(process_id: int) -> bool:
    found = status.read_runtime_status() or {}
    return found.get("pid") == process_id and found.get("gateway_state") in {"running", "degraded"}


def stop(_wishes: argparse.Namespace, out: Output) -> int:
    """End the one that runs."""
    process_id = status.running_pid()
    if process_id is None:
        out.text("No gateway runs.")
        return 0
    os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while status.running_pid() is not None:
        if time.monotonic() > deadline:
            raise UsageError(f"process {process_id} does not end; see the log")
        out.progress("finishing what runs …")
        time.sleep(0.1)
    out.progress("")
    out.text("It has ended; what was not answered is answered after the next start.")
    return 0


def tell(wishes: argparse.Namespace, out: Output) -> int:
    """Whether one runs."""
    process_id = status.running_pid()
    found = status.read_runtime_status() or {}
    waiting = 0
    if history.exists():
        with history.reading() as db:
            waiting = db.waiting_places()
    if wishes.json:
        facts = {name: found.get(name) for name in ("gateway_state", "start_time", "platforms")}
        out.json(
            {"running": process_id is not None, "pid": process_id, **facts, "waiting": waiting}
        )
        return 0
    if process_id is None:
        out.text("No gateway runs. `hermes gateway start` starts one.")
    else:
        since = moments.ago(found.get("start_time"), time.time())
        platforms = ", ".join(found.get("platforms") or {}) or "none"
        out.text(f"It runs (process {process_id}), started {since}; platforms: {platforms}.")
    out.text(f"{moments.plural(waiting, 'chat')} with messages that wait.")
    return 0


ACTIONS: Final = (
    ("run", "answer chats here, until Ctrl-C", run),
    ("start", "answer chats in the background", start),
    ("stop", "end the one that runs", stop),
    ("status", "whether one runs, and what waits", tell),
)
