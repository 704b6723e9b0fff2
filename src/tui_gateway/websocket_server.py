"""The JSON-RPC server on WebSockets: many clients, one hub, loopback only."""

from __future__ import annotations

import contextlib
import hmac
import logging
import queue
import socket
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from tui_gateway.dispatcher import Dispatcher
from tui_gateway.frames import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import Server, ServerConnection

    from tui_gateway.hub import Hub

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
PATH: Final = "/api/ws"
MAX_QUEUED_FRAMES: Final = 20_000  # frames; a client with more has stopped reading


class WebSocketServer:
    """Listens for clients and gives each its own dispatcher."""

    def __init__(self, hub: Hub, token: str, port: int = 0) -> None:
        self._hub = hub
        self._token = token
        self._count = 0
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        log.setLevel(logging.WARNING)  # connections are not logged
        self._server: Server = self._stack.enter_context(
            serve(
                self._handle,
                HOST,
                port,
                process_request=self._admit,
                compression=None,
                max_size=MAX_FRAME_BYTES,
                logger=log,
            )
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="hermes-sockets", daemon=True
        )

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"ws://{HOST}:{self._server.socket.getsockname()[1]}{PATH}"

    @property
    def count(self) -> int:
        """The number of connected clients."""
        return self._count

    def start(self) -> None:
        """Start accepting connections."""
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting connections."""
        self._stack.close()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Require the bearer token, which web pages do not have."""
        header = request.headers.get("Authorization", "")
        if not hmac.compare_digest(header.encode(), f"Bearer {self._token}".encode()):
            return connection.respond(
                HTTPStatus.UNAUTHORIZED, "The bearer token is missing or wrong.\n"
            )
        if request.path != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, "Not found.\n")
        return None

    def _handle(self, connection: ServerConnection) -> None:
        outgoing = OutgoingFrames(connection)
        dispatcher = Dispatcher(self._hub, outgoing.put)
        with self._lock:
            self._count += 1
        try:
            dispatcher.greet()
            for message in connection:
                dispatcher.handle_line(message.encode() if isinstance(message, str) else message)
        except ConnectionClosed:
            pass  # handled like a regular close
        finally:
            dispatcher.is_gone = True
            outgoing.end()
            with self._lock:
                self._count -= 1
            self._hub.forget(dispatcher)


class OutgoingFrames:
    """The send queue of a client; a slow client does not block others."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._send, name="hermes-outgoing", daemon=True).start()

    def put(self, frame: bytes) -> None:
        """Queue a frame; ConnectionError if the client has stopped reading."""
        if self._frames.qsize() < MAX_QUEUED_FRAMES:
            self._frames.put(frame)
            return
        with contextlib.suppress(OSError):  # it may already be closed
            self._connection.socket.shutdown(socket.SHUT_RDWR)  # unblocks the reading thread
        raise ConnectionError("the client has stopped reading")

    def end(self) -> None:
        """End the queue."""
        self._frames.put(None)

    def _send(self) -> None:
        while (frame := self._frames.get()) is not None:
            try:
                self._connection.send(frame.decode())
            except (ConnectionClosed, OSError):
                return
