"""One client connection: dispatches requests, sends responses and events."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes_core import __version__
from hermes_core.errors import HermesError
from hermes_core.isolate import Failure, attempt
from tui_gateway import frames
from tui_gateway.frames import CRASHED, UNKNOWN_METHOD, RpcError, RpcRequest
from tui_gateway.methods import METHODS
from tui_gateway.protocol import GatewayReady

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_gateway.frames import Frame
    from tui_gateway.hub import Hub
    from tui_gateway.protocol import ClientEvent


class Dispatcher:
    """Handles the requests of one client."""

    def __init__(self, hub: Hub, write: Callable[[bytes], object]) -> None:
        self.hub = hub
        self.is_gone = False
        self._write = write
        self._write_lock = threading.Lock()

    def greet(self) -> None:
        """Send the first frame."""
        self.event("", GatewayReady(__version__, sorted(METHODS)))

    def handle_line(self, line: bytes) -> None:
        """Handle one line; invalid input gets an error response."""
        if not line.strip():
            return
        try:
            request = frames.parse(line)
        except RpcError as error:
            self.send(frames.error(frames.id_of(line), error.code, str(error)))
            return
        method = METHODS.get(request.method)
        if method is not None and method.is_slow:
            self.hub.pool.submit(self._respond, request)
        else:
            self._respond(request)

    def _respond(self, request: RpcRequest) -> None:
        response = attempt(f"rpc {request.method}", lambda: self._execute(request))
        if isinstance(response, Failure):
            text = f"{type(response.error).__name__}: {response.error}"
            response = frames.error(request.id, CRASHED, text)
        if request.id is not None:
            self.send(response)

    def _execute(self, request: RpcRequest) -> Frame:
        method = METHODS.get(request.method)
        try:
            if method is None:
                raise RpcError(UNKNOWN_METHOD, f"unknown method {request.method!r}")
            return frames.result(request.id, method.call(self, request.params))
        except RpcError as error:
            return frames.error(request.id, error.code, str(error))
        except HermesError as error:
            return frames.error(request.id, CRASHED, str(error))

    def event(self, session_id: str, event: ClientEvent) -> None:
        """Send an event to the client."""
        self.send(frames.event(session_id, event))

    def send(self, frame: Frame) -> None:
        """Write a frame; frames of concurrent threads do not interleave."""
        if self.is_gone:
            return
        with self._write_lock:
            try:
                self._write(frames.encode(frame))
            except (BrokenPipeError, ConnectionError, ValueError):
                self.is_gone = True  # the client is disconnected
