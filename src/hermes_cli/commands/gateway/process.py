"""`hermes gateway run`, `start`, `stop`, `restart` and `status`."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from gateway import status
from gateway.platforms.local import socket_path
from gateway.process import main
from gateway.status import RuntimeFacts
from hermes_cli import history
from hermes_core import background_process, human_format, log_file, paths
from hermes_core.background_process import end
from hermes_core.errors import StoreError, UsageError
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    import argparse

    from gateway.status import RuntimeStatus
    from hermes_cli.output import CommandOutput

START_SECONDS = 20.0
STOP_SECONDS = 240.0
NO_PLATFORM = (
    "No chat platform is configured: only the local socket receives messages. "
    "docs/how-to/chat-apps.md describes how to connect one."
)


def run(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Run the gateway in the foreground."""
    out.note(f"Listening on {socket_path()}. Press Ctrl+C to stop.")
    log_file.install(log_file.GATEWAY_LOG_NAME)
    ended = main.run(out.note)
    if ended is main.ProcessEnd.ALREADY_RUNNING:
        raise UsageError(f"The gateway is already running (PID {status.read_pid()}).")
    if ended is main.ProcessEnd.RESTART:
        main.restart()
    return 0


def start(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Start the gateway in the background."""
    if status.running_pid() is not None:
        raise UsageError(f"The gateway is already running (PID {status.running_pid()}).")
    log = paths.logs_path() / "gateway.log"
    process_id = background_process.start(log, "gateway.process.main")
    deadline = time.monotonic() + START_SECONDS
    while not _is_up(process_id):
        has_ended = background_process.exit_status(process_id) is not None
        if has_ended or time.monotonic() > deadline:
            reason = _reason(process_id) or f"see {log}"
            raise UsageError(f"The gateway did not start: {reason}")
        time.sleep(0.05)
    out.text(f"Gateway started (PID {process_id}).")
    _print_missing(out)
    return 0


def _print_missing(out: CommandOutput) -> None:
    """Print what the gateway lacks to answer messages."""
    from hermes_cli.commands.system import doctor  # noqa: PLC0415 - not for the other actions

    if not doctor.configured_platforms():
        out.note(NO_PLATFORM)
    for check in doctor.check_model():
        if check.status != "ok":
            out.note(f"Model: {check.detail}. {check.advice}.")


def _reason(process_id: int) -> str:
    runtime_status = status.read_runtime_status() or {}
    is_own = (runtime_status.get("pid"), runtime_status.get("gateway_state")) == (
        process_id,
        "startup_failed",
    )
    return str(runtime_status.get("exit_reason")) if is_own else ""


def _is_up(process_id: int) -> bool:
    runtime_status = status.read_runtime_status() or {}
    return runtime_status.get("pid") == process_id and runtime_status.get("gateway_state") in {
        "running",
        "degraded",
    }


def restart(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Restart the running gateway."""
    process_id = status.running_pid()
    if process_id is None:
        raise UsageError("The gateway is not running. Start it with `hermes gateway start`.")
    before = (status.read_runtime_status() or {}).get("start_time")
    os.kill(process_id, signal.SIGUSR1)
    deadline = time.monotonic() + STOP_SECONDS + START_SECONDS
    while not (_is_up(process_id) and _start_time() != before):
        if time.monotonic() > deadline or status.running_pid() not in {process_id, None}:
            raise UsageError(
                f"The gateway (PID {process_id}) did not restart. See `hermes gateway logs`."
            )
        out.progress("Waiting for current turns to finish…")
        time.sleep(0.1)
    out.progress("")
    out.text(f"Gateway restarted (PID {process_id}).")
    return 0


def _start_time() -> float | None:
    return (status.read_runtime_status() or {}).get("start_time")


def stop(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Stop the running gateway."""
    process_id = status.running_pid()
    if process_id is None:
        out.text(f"The gateway is not running{' on this machine' if _is_shared() else ''}.")
        if _is_shared():
            out.hint("`hermes nodes` lists the gateways of other machines.")
        return 0
    end(
        process_id,
        lambda: status.running_pid() is None,
        STOP_SECONDS,
        lambda: out.progress("Waiting for current turns to finish…"),
    )
    out.progress("")
    if _is_shared():
        out.text(
            "Gateway stopped on this machine. Gateways of other machines continue (see `hermes "
            "nodes`); without one, pending messages will be answered after the next start."
        )
    else:
        out.text("Gateway stopped. Pending messages will be answered after the next start.")
    return 0


def _is_shared() -> bool:
    """Whether gateways of other machines may use the same history."""
    return bool(store_url(paths.state_db_path()))


def print_status(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the status."""
    process_id = status.running_pid()
    runtime_status = status.read_runtime_status() or {}
    problems = status.live_problems(runtime_status, time.time()) if process_id else []
    pending = _count_pending()
    if arguments.json:
        facts = {
            name: runtime_status.get(name)
            for name in ("gateway_state", "start_time", "http_url", *RuntimeFacts.__annotations__)
        }
        is_running = process_id is not None
        counts = {"problems": problems, **pending._asdict()}
        out.json({"running": is_running, "pid": process_id, **facts, **counts})
        return pending.exit_code
    if process_id is None:
        out.hint("The gateway is not running. Start it with `hermes gateway start`.")
    else:
        _print_process(process_id, runtime_status, problems, out)
    if pending.error is not None:
        out.note(f"Pending messages are unknown: {pending.error}")
    if pending.waiting is not None:
        out.text(f"{human_format.plural(pending.waiting, 'chat')} with pending messages.")
    if pending.failed_messages:
        messages = human_format.plural(pending.failed_messages, "message")
        out.hint(f"{messages} could not be handled: see `hermes gateway quarantine`.")
    if pending.asking:
        users = human_format.plural(pending.asking, "user")
        out.hint(f"{users} waiting for approval: see `hermes pairing list`.")
    return pending.exit_code


def _print_process(
    process_id: int, runtime_status: RuntimeStatus, problems: list[str], out: CommandOutput
) -> None:
    """Print the state of the running gateway, its platforms and turns."""
    since = human_format.ago(runtime_status.get("start_time"), time.time())
    is_silent = status.silent_seconds(runtime_status, time.time()) > 0
    state = "not responding" if is_silent else runtime_status.get("gateway_state")
    out.text(f"The gateway is running (PID {process_id}), started {since}: {state}.")
    for name, platform in (runtime_status.get("platforms") or {}).items():
        why = f": {platform['error_message']}" if platform.get("error_message") else ""
        out.text(f"  {name}  {platform.get('state')}{why}")
    for problem in problems:
        out.styled(("  ! ", "yellow"), (problem, ""))
    turns = runtime_status.get("turns")
    if turns and turns.get("running"):
        running = human_format.plural(turns["running"], "turn")
        oldest = f"the longest for {turns['oldest_seconds']:.0f} s"
        silent = f"up to {turns['silent_seconds']:.0f} s without progress"
        out.text(f"{running} running, {oldest}, {silent}.")


class PendingCounts(NamedTuple):
    """Chats with pending messages and users to approve; None if the history cannot be read."""

    waiting: int | None = 0
    asking: int | None = 0
    failed_messages: int | None = 0
    error: str | None = None

    @property
    def exit_code(self) -> int:
        """1 if the history cannot be read."""
        return 0 if self.error is None else 1


def _count_pending() -> PendingCounts:
    if not history.exists():
        return PendingCounts()
    try:
        with history.open_for_reading() as db:
            asking = len(db.pairings.pending())
            return PendingCounts(db.inbox.waiting_places(), asking, db.inbox.count_failed())
    except StoreError as error:
        return PendingCounts(None, None, None, str(error))
