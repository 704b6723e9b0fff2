"""The daemon: conversations that go on when the terminal is closed.

One runs for a Hermes folder at most. Terminals start it when they need it; it leaves when
nobody has needed it for a while.
"""

from __future__ import annotations

import atexit
import os
import secrets
import selectors
import time
from typing import TYPE_CHECKING, Final

from hermes_core import __version__, background_process, paths
from hermes_core.errors import HermesError
from hermes_core.instance_record import DAEMON, InstanceRecord
from hermes_core.isolate import Step, attempt
from hermes_core.signals import stop_signals
from tui_gateway.client import to_daemon
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from tui_gateway.client import Hear, RpcClient
    from tui_gateway.hub import Hub
    from tui_gateway.websocket_server import Sockets

TICK_SECONDS: Final = 1.0
UNNEEDED_SECONDS: Final = 60.0
START_SECONDS: Final = 20.0
TRIES: Final = 5
PAUSE_SECONDS: Final = 0.1


class DaemonError(HermesError):
    """The daemon does not start, or does not answer."""


def serve(*, port: int = 0, stays: bool) -> InstanceRecord | None:
    """Be the daemon until the end; where another one is, nothing is done and None comes back."""
    from tui_gateway import server  # noqa: PLC0415 - not for clients
    from tui_gateway.entry import wake_on_signals  # noqa: PLC0415 - as above
    from tui_gateway.hub import Hub  # noqa: PLC0415 - as above
    from tui_gateway.websocket_server import Sockets  # noqa: PLC0415 - as above

    with DAEMON.hold() as is_ours:
        if not is_ours:
            return None
        with server._get_db() as db:  # noqa: SLF001 - the seam
            hub = Hub(db)
            wake = wake_on_signals(hub, *stop_signals())
            token = secrets.token_urlsafe(32)
            sockets = Sockets(hub, token, port)
            place = InstanceRecord(sockets.url, token, os.getpid(), __version__)
            sockets.start()
            DAEMON.publish(place)
            atexit.register(hub.close_all, "tui_shutdown")  # a second net
            try:
                _watch(hub, sockets, wake, stays=stays)
            finally:
                hub.close_all("tui_shutdown")
                sockets.stop()
        return place


def _watch(hub: Hub, sockets: Sockets, wake: int, *, stays: bool) -> None:
    """Look after what nobody looks at, until a signal, a request or the lack of any use."""
    needed_at = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(wake, selectors.EVENT_READ)
        while not hub.is_leaving:
            if selector.select(timeout=TICK_SECONDS):
                os.read(wake, 64)
            attempt(Step("close what is over", hub.sweep))
            if sockets.count or hub.all_live():
                needed_at = time.monotonic()
            if not stays and time.monotonic() - needed_at > UNNEEDED_SECONDS:
                return


def summoned() -> InstanceRecord:
    """The daemon of this folder, started if none runs."""
    place = DAEMON.find()
    if place is not None:
        return place
    log = paths.logs_path() / "serve.log"
    process_id = background_process.start(log, "hermes_cli", "serve", "--until-idle")
    has_ended = False
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        place = DAEMON.find()
        if place is not None:
            return place
        if not has_ended:
            gone, status = os.waitpid(process_id, os.WNOHANG)
            has_ended = bool(gone)  # well: another terminal's is starting
            if gone and status:
                raise DaemonError(f"the daemon did not start; {log} says why")
        time.sleep(0.02)
    raise DaemonError("the daemon did not start in time; --no-daemon does without it")


def reached(hear: Hear) -> RpcClient:
    """A link to the daemon of this folder, started if none runs; past one that is just dying."""
    for _ in range(TRIES):
        try:
            return to_daemon(summoned(), hear)
        except RpcError:
            time.sleep(PAUSE_SECONDS)
    return to_daemon(summoned(), hear)
