"""The web server: it listens, and when it ends nobody's open connection holds it up."""

from __future__ import annotations

import asyncio
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


def server(app: Dashboard, certificate: Certificate | None = None) -> UvicornServer:
    """A server for *app*; it logs no requests and does not say what it is."""
    return make_server(
        app,
        app.farewell.say,
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


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; UsageError says why it cannot be."""
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "ports are numbers from 0 to 65535"
        raise UsageError(
            f"Cannot listen on {host}:{port}: {reason}. Choose another port with --port."
        ) from error
