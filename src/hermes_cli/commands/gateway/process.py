"""`hermes gateway run`, `start`, `stop`, `restart` and `status`."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from gateway import status
from gateway.platforms.local import socket_path
from gateway.process import main
from hermes_cli import history
from hermes_core import background_process, human_format, log_file, paths
from hermes_core.background_process import end
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

START_SECONDS = 20.0
STOP_SECONDS = 240.0


def run(_wishes: argparse.Namespace, out: Output) -> int:
    """Answer chats."""
    out.note(f"Programs of this machine: {socket_path()}. Ctrl-C ends it.")
    log_file.install(log_file.GATEWAY)
    ended = main.run(out.note)
    if ended is main.ProcessEnd.ALREADY_RUNNING:
        raise UsageError(f"a gateway runs already (process {status.read_pid()})")
    if ended is main.ProcessEnd.RESTART:
        main.restart()
    return 0


def start(_wishes: argparse.Namespace, out: Output) -> int:
    """Answer chats in the background."""
    if status.running_pid() is not None:
        raise UsageError(f"a gateway runs already (process {status.running_pid()})")
    log = paths.logs_path() / "gateway.log"
    process_id = background_process.start(log, "gateway.process.main")
    deadline = time.monotonic() + START_SECONDS
    while not _is_up(process_id):
        if os.waitpid(process_id, os.WNOHANG)[0] or time.monotonic() > deadline:
            raise UsageError(f"it did not start: {_reason(process_id) or f'{log} says why'}")
        time.sleep(0.05)
    out.text(f"It runs (process {process_id}).")
    return 0


def _reason(process_id: int) -> str:
    found = status.read_runtime_status() or {}
    is_told = (found.get("pid"), found.get("gateway_state")) == (process_id, "startup_failed")
    return str(found.get("exit_reason")) if is_told else ""


def _is_up(process_id: int) -> bool:
    found = status.read_runtime_status() or {}
    return found.get("pid") == process_id and found.get("gateway_state") in {"running", "degraded"}


def restart(_wishes: argparse.Namespace, out: Output) -> int:
    """Let the one that runs begin anew."""
    process_id = status.running_pid()
    if process_id is None:
        raise UsageError("no gateway runs; `hermes gateway start` starts one")
    before = (status.read_runtime_status() or {}).get("start_time")
    os.kill(process_id, signal.SIGUSR1)
    deadline = time.monotonic() + STOP_SECONDS + START_SECONDS
    while not (_is_up(process_id) and _started() != before):
        if time.monotonic() > deadline or status.running_pid() not in {process_id, None}:
            raise UsageError(f"process {process_id} did not come back; see `hermes gateway logs`")
        out.progress("finishing what runs …")
        time.sleep(0.1)
    out.progress("")
    out.text(f"It has begun anew (process {process_id}).")
    return 0


def _started() -> float | None:
    return (status.read_runtime_status() or {}).get("start_time")


def stop(_wishes: argparse.Namespace, out: Output) -> int:
    """End the one that runs."""
    process_id = status.running_pid()
    if process_id is None:
        out.text("No gateway runs.")
        return 0
    end(
        process_id,
        lambda: status.running_pid() is None,
        STOP_SECONDS,
        lambda: out.progress("finishing what runs …"),
    )
    out.progress("")
    out.text("It has ended; what was not answered is answered after the next start.")
    return 0


def tell(arguments: argparse.Namespace, out: Output) -> int:
    """Whether one runs."""
    process_id = status.running_pid()
    found = status.read_runtime_status() or {}
    waiting = 0
    if history.exists():
        with history.reading() as db:
            waiting = db.waiting_places()
    if arguments.json:
        facts = {
            name: found.get(name)
            for name in ("gateway_state", "start_time", "platforms", "http_url")
        }
        out.json(
            {"running": process_id is not None, "pid": process_id, **facts, "waiting": waiting}
        )
        return 0
    if process_id is None:
        out.text("No gateway runs. `hermes gateway start` starts one.")
    else:
        since = human_format.ago(found.get("start_time"), time.time())
        out.text(f"It runs (process {process_id}), started {since}: {found.get('gateway_state')}.")
        for name, state in (found.get("platforms") or {}).items():
            why = f": {state['error_message']}" if state.get("error_message") else ""
            out.text(f"  {name}  {state.get('state')}{why}")
    out.text(f"{human_format.plural(waiting, 'chat')} with messages that wait.")
    return 0
