"""Limits of the HTTP servers: time for a request, and connections per client and in total.

A connection whose request is not complete is *unfinished*. When there are too many of them,
the one that has been silent for longest is closed, so that clients that send half a request
cannot keep others out: a real request is complete after milliseconds.

Import it only where something is served: uvicorn takes 100 ms to import.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import resource
from typing import TYPE_CHECKING, Any, Final, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    import h11

HEAD_SECONDS: Final = 15.0  # for the TLS handshake, and then for the head of a request
BODY_IDLE_SECONDS: Final = 30.0  # without a byte of the body
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_CONNECTIONS: Final = 1000
MIN_CONNECTIONS: Final = 16
TIMEOUT_RESPONSE: Final = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
BUSY_RESPONSE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\n"
    b"connection: close\r\n\r\n"
)


class ClientConnection(Protocol):
    """An open connection, as the limits see it."""

    client_host: str

    def abort(self) -> None:
        """Close it at once."""
        ...


class ConnectionLimits:
    """The connections of one server; used in its event loop only."""

    def __init__(self, file_limit: int | None = None) -> None:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if file_limit is None else file_limit
        unlimited = soft == resource.RLIM_INFINITY
        # Half of the files are left for the store, the daemon and other work.
        self.total = MAX_CONNECTIONS if unlimited else min(MAX_CONNECTIONS, soft // 2)
        self.total = max(self.total, MIN_CONNECTIONS)
        self.per_client = self.total * 3 // 4
        self.unfinished = max(self.total // 4, MIN_CONNECTIONS // 2)
        self._open: dict[ClientConnection, None] = {}
        self._unfinished: dict[ClientConnection, None] = {}  # the longest silent one first

    def admit(self, connection: ClientConnection) -> bool:
        """Count a new connection; False if there is no room for it."""
        if len(self._open) >= self.total and not self._close_silent(connection.client_host):
            return False
        host = connection.client_host
        if sum(each.client_host == host for each in self._open) >= self.per_client:
            return False
        self._open[connection] = None
        self.expect_request(connection)
        return True

    def expect_request(self, connection: ClientConnection) -> None:
        """Count a connection as unfinished and just active; may close another one."""
        if connection not in self._open:
            return
        self._unfinished.pop(connection, None)
        self._unfinished[connection] = None
        if len(self._unfinished) > self.unfinished:
            self._close_silent(connection.client_host)

    def finish_request(self, connection: ClientConnection) -> None:
        """The request of a connection is complete."""
        self._unfinished.pop(connection, None)

    def forget(self, connection: ClientConnection) -> None:
        """A connection was closed."""
        self._open.pop(connection, None)
        self._unfinished.pop(connection, None)

    def _close_silent(self, host: str) -> bool:
        """Close the longest silent unfinished connection of the client with most of them."""
        if not self._unfinished:
            return False
        counts: dict[str, int] = {host: 0}
        for each in self._unfinished:
            counts[each.client_host] = counts.get(each.client_host, 0) + 1
        busiest = max(counts, key=lambda name: counts[name])
        silent = next(each for each in self._unfinished if each.client_host == busiest)
        self.forget(silent)
        silent.abort()
        return True


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for heads and bodies."""

    def __init__(self, limits: ConnectionLimits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.client_host = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first head."""
        super().connection_made(transport)
        self.client_host = self.client[0] if self.client else ""
        if not self._limits.admit(self):
            transport.write(BUSY_RESPONSE)
            transport.close()
            return
        self._restart(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Handle data, then decide what the client still has to send."""
        had_request = self._has_request
        super().data_received(data)
        self._follow(is_new=had_request != self._has_request)

    def on_response_complete(self) -> None:
        """A finished response leaves the connection idle, or with the next request."""
        super().on_response_complete()
        self._follow(is_new=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limits."""
        self._leave()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """The connection belongs to another protocol from here on."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def abort(self) -> None:
        """Close the connection at once."""
        self._leave()
        self.transport.abort()

    @property
    def _has_request(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _follow(self, *, is_new: bool) -> None:
        """Adjust the state and the time limit after progress of the client or a response."""
        if self._is_closed:
            return
        if not self._has_request:
            self._limits.expect_request(self)
            if is_new:  # between requests, uvicorn's keep-alive limit closes an idle connection
                self._restart(HEAD_SECONDS)
        elif self.cycle.more_body:
            self._limits.expect_request(self)
            self._restart(BODY_IDLE_SECONDS)
        else:
            self._limits.finish_request(self)
            self._stop_timer()

    def _restart(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        if self._has_request and self.flow.read_paused:
            self._restart(BODY_IDLE_SECONDS)  # the server reads slowly, not the client
            return
        if not self._has_request:
            self.transport.write(TIMEOUT_RESPONSE)
            self.transport.close()
        else:
            self.transport.abort()
        self._leave()

    def _leave(self) -> None:
        self._is_closed = True
        self._stop_timer()
        self._limits.forget(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class TlsProtocol(asyncio.Protocol):
    """Counts a connection before its TLS handshake, which a client may never finish."""

    def __init__(
        self,
        limits: ConnectionLimits,
        context: ssl.SSLContext,
        make_protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        self._limits = limits
        self._context = context
        self._make_protocol = make_protocol
        self._handshake: asyncio.Task[None] | None = None
        self._early_data = b""  # a client may send its request together with its last message
        self._is_lost = False
        self.client_host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP server
        self._transport = transport
        address = transport.get_extra_info("peername")
        self.client_host = str(address[0]) if address else ""
        if not self._limits.admit(self):
            transport.abort()
            return
        transport.pause_reading()
        self._handshake = asyncio.get_running_loop().create_task(self._run_handshake(transport))

    def data_received(self, data: bytes) -> None:
        """Keep what arrives before the handshake is reported as complete."""
        self._early_data += data

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left before the handshake was over."""
        self._is_lost = True
        self._limits.forget(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()
        if self._handshake is not None:
            self._handshake.cancel()

    async def _run_handshake(self, transport: asyncio.Transport) -> None:
        secure = None
        with contextlib.suppress(OSError, asyncio.CancelledError):  # not a valid client
            secure = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HEAD_SECONDS,
            )
        self._limits.forget(self)
        if secure is None or self._is_lost:
            transport.abort()
            return
        protocol = self._make_protocol()
        secure.set_protocol(protocol)
        protocol.connection_made(secure)
        if self._early_data:
            protocol.data_received(self._early_data)


def limited_protocol(limits: ConnectionLimits) -> Any:
    """The protocol class for uvicorn, which creates one object per connection."""
    return functools.partial(LimitedProtocol, limits)
