"""The web server: it listens, and when it ends nobody's open connection holds it up."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn

from hermes_core.errors import UsageError
from hermes_core.signals import stop_signals
from hermes_dashboard.resources.chat import LARGEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_dashboard.app import Dashboard


class Farewell:
    """Said once, from any thread; whoever listens lets go."""

    def __init__(self) -> None:
        self.is_said = False
        self._listeners: dict[Callable[[], object], asyncio.AbstractEventLoop] = {}

    def say(self) -> None:
        """The server is about to end."""
        self.is_said = True
        for listener, loop in list(self._listeners.items()):
            loop.call_soon_threadsafe(listener)

    def hear(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call *listener* then, in the loop of whoever asks; returns how to stop listening."""
        self._listeners[listener] = asyncio.get_running_loop()

        def forget() -> None:
            self._listeners.pop(listener, None)

        return forget

    async def wait(self) -> None:
        """Until it is said."""
        said = asyncio.Event()
        forget = self.hear(said.set)
        try:
            if not self.is_said:
                await said.wait()
        finally:
            forget()


SHUTDOWN_SECONDS: Final = 3


class Certificate(NamedTuple):
    """What TLS needs."""

    path: Path
    key: Path


class Server(uvicorn.Server):
    """Says farewell to those who listen before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = app

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal means to end in good order; it is not passed on afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in stop_signals()}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; streams and sockets first."""
        self._dashboard.farewell.say()
        await super().shutdown(sockets)


def server(app: Dashboard, certificate: Certificate | None = None) -> Server:
    """A server for *app*; it logs no requests and does not say what it is."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        ws="websockets-sansio",
        ws_max_size=LARGEST_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=None if certificate is None else str(certificate.path),
        ssl_keyfile=None if certificate is None else str(certificate.key),
    )
    return Server(config, app)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; UsageError says why it cannot be."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "ports are numbers from 0 to 65535"
        raise UsageError(
            f"{host}:{port} cannot be listened on: {reason}. Choose another port with --port."
        ) from error
    # Connections inherit it; asyncio sets it only on sockets whose protocol was named. Without
    # it the body of an answer waits 40 ms for the reader to confirm the head.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found
