"""The HTTP server of the gateway and of the dashboard: uvicorn with their settings.

Import it only where something is served: uvicorn takes 100 ms to import.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from hermes_core.connection_limits import (
    MAX_HEAD_BYTES,
    ConnectionLimits,
    TlsProtocol,
    limited_protocol,
)
from hermes_core.signals import stop_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class UvicornServer(uvicorn.Server):
    """A server that calls *on_shutdown* before it waits for open connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_shutdown: Callable[[], object] = lambda: None,
        *,
        limits: ConnectionLimits,
        handles_signals: bool,
    ) -> None:
        super().__init__(config)
        self._on_shutdown = on_shutdown
        self._limits = limits
        self._handles_signals = handles_signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down on stop signals in the main thread; do not raise them again afterwards."""
        is_main = threading.current_thread() is threading.main_thread()
        numbers = stop_signals() if is_main and self._handles_signals else []
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on *sockets*; with TLS, unfinished handshakes are limited too."""
        context = self.config.ssl
        if context is None or sockets is None:
            await super().startup(sockets)
            return
        await super().startup([])  # everything except listening
        make_tls = functools.partial(TlsProtocol, self._limits, context, self._make_protocol)
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(make_tls, sock=sock, backlog=self.config.backlog)
            for sock in sockets
        ]

    def _make_protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(
            config=self.config,  # type: ignore[call-arg]
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        return protocol

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Call *on_shutdown*, then close connections."""
        self._on_shutdown()
        await super().shutdown(sockets)


def make_server(
    app: Any,
    on_shutdown: Callable[[], object] = lambda: None,
    *,
    handles_signals: bool,
    **options: Any,
) -> UvicornServer:
    """A server for an ASGI *app* that logs no requests; *options* are uvicorn's."""
    limits = ConnectionLimits()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=limited_protocol(limits),
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        **options,
    )
    return UvicornServer(config, on_shutdown, limits=limits, handles_signals=handles_signals)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises OSError or OverflowError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, port), family=family)
    # Accepted connections inherit it. Without it, a response body waits up to 40 ms for the
    # client to acknowledge the head.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server
