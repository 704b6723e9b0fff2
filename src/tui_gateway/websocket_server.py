"""The same server on WebSockets: several clients, one hub, on the loopback only."""

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
MAX_WAITING: Final = 20_000  # frames; who is further behind has stopped reading


class Sockets:
    """Listens, and gives every client a dispatcher of its own."""

    def __init__(self, hub: Hub, token: str, port: int = 0) -> None:
        self._hub = hub
        self._token = token
        self._count = 0
        self._lock = threading.Lock()
        self._held = contextlib.ExitStack()
        log.setLevel(logging.WARNING)  # who comes and goes is no news
        self._server: Server = self._held.enter_context(
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
        """Where clients connect to."""
        return f"ws://{HOST}:{self._server.socket.getsockname()[1]}{PATH}"

    @property
    def count(self) -> int:
        """How many are connected."""
        return self._count

    def start(self) -> None:
        """Let them come."""
        self._thread.start()

    def stop(self) -> None:
        """Let nobody in any more."""
        self._held.close()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Only who knows the word; a page of the web, which cannot know it, is told nothing."""
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "The word is missing or wrong.\n")
        if request.path != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is nothing here.\n")
        return None

    def _handle(self, connection: ServerConnection) -> None:
        outgoing = OutgoingFrames(connection)
        peer = Dispatcher(self._hub, outgoing.put)
        with self._lock:
            self._count += 1
        try:
            peer.greet()
            for message in connection:
                peer.take(message.encode() if isinstance(message, str) else message)
        except ConnectionClosed:
            pass  # without saying goodbye; what follows is the same
        finally:
            peer.is_gone = True
            outgoing.end()
            with self._lock:
                self._count -= 1
            self._hub.forget(peer)


class OutgoingFrames:
    """Frames on their way to a client; a slow one keeps nobody else waiting."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._send, name="hermes-outgoing", daemon=True).start()

    def put(self, frame: bytes) -> None:
        """Send a frame in its turn; ConnectionError for a client that has stopped reading."""
        if self._frames.qsize() < MAX_WAITING:
            self._frames.put(frame)
            return
        with contextlib.suppress(OSError):  # it may be closed already
            self._connection.socket.shutdown(socket.SHUT_RDWR)  # wakes whoever reads from it
        raise ConnectionError("the client has stopped reading")

    def end(self) -> None:
        """Nothing more will come."""
        self._frames.put(None)

    def _send(self) -> None:
        while (frame := self._frames.get()) is not None:
            try:
                self._connection.send(frame.decode())
            except (ConnectionClosed, OSError):
                return
