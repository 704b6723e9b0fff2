"""The web server, and the signal that ends open connections at shutdown."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.uvicorn_server import UvicornServer, listen, make_server
from hermes_dashboard.resources.chat import MAX_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from hermes_dashboard.app import Dashboard


class ShutdownSignal:
    """Announces the shutdown once, from any thread; listeners then end their connections."""

    def __init__(self) -> None:
        self.is_set = False
        self._listeners: dict[Callable[[], object], asyncio.AbstractEventLoop] = {}

    def send(self) -> None:
        """Announce that the server is about to stop."""
        self.is_set = True
        for listener, loop in list(self._listeners.items()):
            loop.call_soon_threadsafe(listener)

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call *listener* at shutdown, in the current event loop; returns the unsubscriber."""
        self._listeners[listener] = asyncio.get_running_loop()

        def unsubscribe() -> None:
            self._listeners.pop(listener, None)

        return unsubscribe

    async def wait(self) -> None:
        """Wait for the shutdown."""
        is_shutting_down = asyncio.Event()
        unsubscribe = self.subscribe(is_shutting_down.set)
        try:
            if not self.is_set:
                await is_shutting_down.wait()
        finally:
            unsubscribe()


SHUTDOWN_SECONDS: Final = 3
NEXT_PORTS: Final = 20  # tried after the default one
MAX_PORT: Final = 65535


class Certificate(NamedTuple):
    """The certificate and key files for TLS."""

    path: Path
    key: Path


def create_server(app: Dashboard, certificate: Certificate | None = None) -> UvicornServer:
    """A server for *app*, without access log and Server header."""
    return make_server(
        app,
        app.shutdown_signal.send,
        handles_signals=True,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        ws="websockets-sansio",
        ws_max_size=MAX_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=None if certificate is None else str(certificate.path),
        ssl_keyfile=None if certificate is None else str(certificate.key),
    )


def open_next_socket(host: str, port: int) -> socket.socket:
    """A listening socket on a port, or on the next one that is free."""
    for number in range(port, min(port + NEXT_PORTS, MAX_PORT) + 1):
        try:
            return listen(host, number)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                break
    return open_socket(host, port)


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket; UsageError if the port cannot be used."""
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "ports are numbers from 0 to 65535"
        raise UsageError(
            f"Cannot listen on {host}:{port}: {reason}. Choose another port with --port."
        ) from error
