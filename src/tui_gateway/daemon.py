"""The daemon: conversations that continue when the terminal is closed.

At most one runs per Hermes folder. Clients start it on demand; it exits when idle.
"""

from __future__ import annotations

import atexit
import os
import secrets
import selectors
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from hermes_core import __version__, background_process, paths
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import HermesError
from hermes_core.instance_record import DAEMON, InstanceRecord
from hermes_core.isolate import attempt
from hermes_core.signals import stop_signals
from tui_gateway.client import connect_to
from tui_gateway.client_environment import share_keys
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_conversation.agent_imports import BackgroundFollower
    from hermes_state.store import SessionDB
    from tui_gateway.client import EventCallback, RpcClient
    from tui_gateway.hub import Hub
    from tui_gateway.websocket_server import WebSocketServer

TICK_SECONDS: Final = 1.0
UNNEEDED_SECONDS: Final = 60.0
START_SECONDS: Final = 20.0
MAX_START_ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.1


class DaemonError(HermesError):
    """The daemon does not start or is unreachable."""


def serve(*, port: int = 0, is_permanent: bool) -> InstanceRecord | None:
    """Run the daemon until it is stopped; None if another one is running."""
    from hermes_conversation.purge_hook import keep_facts  # noqa: PLC0415 - not for clients
    from hermes_state.store import SessionDB  # noqa: PLC0415 - as above
    from tui_gateway.entry import wake_on_signals  # noqa: PLC0415 - as above
    from tui_gateway.hub import Hub  # noqa: PLC0415 - as above
    from tui_gateway.websocket_server import WebSocketServer  # noqa: PLC0415 - as above

    with DAEMON.hold() as is_ours:
        if not is_ours:
            return None
        with SessionDB(purge_hook=keep_facts) as db:
            db.search.updater.start()
            hub = Hub(db)
            wake = wake_on_signals(hub, *stop_signals())
            token = secrets.token_urlsafe(32)
            sockets = WebSocketServer(hub, token, port)
            record = InstanceRecord(sockets.url, token, os.getpid(), __version__)
            sockets.start()
            DAEMON.publish(record)
            atexit.register(hub.close_all, "tui_shutdown")  # in case the loop is not reached
            follower = _start_follower(db) if is_permanent else None
            try:
                _watch(hub, sockets, wake, is_permanent=is_permanent)
            finally:
                if follower is not None:
                    follower.stop()
                hub.close_all("tui_shutdown")
                sockets.stop()
        return record


def _start_follower(db: SessionDB) -> BackgroundFollower | None:
    """Follow other agents, if the settings ask for it."""
    if not is_set("import.follow"):
        return None
    from hermes_conversation.agent_imports import BackgroundFollower  # noqa: PLC0415 - rarely set

    follower = BackgroundFollower(db, ConfigFile.of_home().settings())
    follower.start()
    return follower


def _watch(hub: Hub, sockets: WebSocketServer, wake: int, *, is_permanent: bool) -> None:
    """Close abandoned conversations until a signal, a shutdown request or the idle timeout."""
    last_used_at = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(wake, selectors.EVENT_READ)
        while not hub.is_leaving:
            if selector.select(timeout=TICK_SECONDS):
                os.read(wake, 64)
            attempt("close abandoned conversations", hub.sweep)
            if sockets.count or hub.all_live():
                last_used_at = time.monotonic()
            if not is_permanent and time.monotonic() - last_used_at > UNNEEDED_SECONDS:
                return


def ensure_running() -> InstanceRecord:
    """The daemon of this folder, started if necessary."""
    record = DAEMON.find()
    if record is not None:
        return record
    log = paths.logs_path() / "serve.log"
    process_id = background_process.start(log, "hermes_cli", "serve", "--until-idle")
    has_ended = False
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        record = DAEMON.find()
        if record is not None:
            return record
        if not has_ended:
            status = background_process.exit_status(process_id)
            has_ended = status is not None  # with status 0: another process is starting one
            if status:
                raise DaemonError(f"The daemon did not start. See {log}.")
        time.sleep(0.02)
    raise DaemonError("The daemon did not start in time. Use --no-daemon to run without it.")


def ensure_detached() -> InstanceRecord:
    """The daemon of this folder, started if necessary by a process that exits.

    It does not descend from this process: editors end all descendants of what they start.
    """
    record = DAEMON.find()
    if record is None:
        command = [sys.executable, "-P", "-m", "tui_gateway.daemon"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env=paths.environment(), start_new_session=True,
        )  # fmt: skip
        record = DAEMON.find()
        if record is None:
            reason = done.stderr.strip().rpartition("\n")[2]
            raise DaemonError(reason or "The daemon did not start.")
    return record


def connect_to_daemon(
    on_event: EventCallback, ensure: Callable[[], InstanceRecord] = ensure_running
) -> RpcClient:
    """A client of the daemon, started if necessary; retries while an old one is exiting.

    The daemon gets the API keys of this process that it does not have.
    """
    for _ in range(MAX_START_ATTEMPTS):
        try:
            return _connect(ensure(), on_event)
        except RpcError:
            time.sleep(PAUSE_SECONDS)
    return _connect(ensure(), on_event)


def _connect(record: InstanceRecord, on_event: EventCallback) -> RpcClient:
    client = connect_to(record, on_event)
    if record.version == __version__:
        client.shared_keys = share_keys(client)
    return client


if __name__ == "__main__":
    ensure_running()
