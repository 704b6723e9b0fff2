"""The JSON-RPC client: blocking calls, and a callback for events.

A hub in this process and the daemon are used through the same interface.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, Final

from tui_gateway.frames import CRASHED, RpcError, encode
from tui_gateway.protocol import ConnectionLost, parse_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.instance_record import InstanceRecord
    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.frames import Frame, ReceivedFrame
    from tui_gateway.hub import Hub
    from tui_gateway.protocol import ClientEvent

    EventCallback = Callable[[str, ClientEvent], object]  # of a session

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 3600.0  # a compression may be slow; a lost connection fails at once


class RpcClient:
    """Sends requests to a server and receives its events."""

    def __init__(
        self, send: Callable[[bytes], object], on_event: EventCallback, *, is_here: bool = False
    ) -> None:
        self.is_here = is_here  # running turns end with this process
        self.shared_keys: tuple[str, ...] = ()  # variables that the daemon has from this process
        self._send = send
        self._on_event = on_event
        self._request_ids = itertools.count(1)
        self._pending: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self.close: Callable[[], object] = lambda: None  # set by the factory functions

    def call(self, method: str, **params: JsonValue) -> Any:
        """The result of a request; RpcError when it failed."""
        request_id = next(self._request_ids)
        future: Future[Any] = Future()
        with self._lock:
            self._pending[request_id] = future
        request: Frame = {
            "jsonrpc": "2.0",
            "id": request_id,
            "method": method,
            "params": params,
        }
        try:
            self._send(encode(request))
            return future.result(timeout=ANSWER_SECONDS)
        except FutureTimeoutError:
            raise RpcError(CRASHED, f"{method} timed out") from None
        except OSError as error:
            raise RpcError(CRASHED, f"connection lost: {error}") from error
        finally:
            with self._lock:
                self._pending.pop(request_id, None)

    def receive(self, line: bytes | str) -> None:
        """Handle a received frame."""
        frame: ReceivedFrame = json.loads(line)
        if frame.get("method") == "event":
            self._receive_event(**frame["params"])
            return
        with self._lock:
            future = self._pending.get(frame.get("id", 0))
        if future is None:
            return
        if "error" in frame:
            future.set_exception(RpcError(**frame["error"]))
        else:
            future.set_result(frame["result"])

    def _receive_event(self, type: str, session_id: str, payload: JsonObject) -> None:  # noqa: A002 - a field of the frame
        event = parse_event(type, payload)
        if event is not None:
            self._on_event(session_id, event)

    def lose(self) -> None:
        """Fail all pending calls because the connection is lost."""
        with self._lock:
            pending, self._pending = list(self._pending.values()), {}
        for future in pending:
            if not future.done():
                future.set_exception(RpcError(CRASHED, "connection lost"))
        self._on_event("", ConnectionLost())


def connect_in_process(hub: Hub, on_event: EventCallback) -> RpcClient:
    """A client of a hub in this process; closing it ends the conversations."""
    from tui_gateway.dispatcher import Dispatcher  # noqa: PLC0415 - not needed by clients of a daemon

    client = RpcClient(lambda line: dispatcher.handle_line(line), on_event, is_here=True)  # noqa: PLW0108 - assigned below
    dispatcher = Dispatcher(hub, client.receive)
    client.close = lambda: hub.close_all("tui_close")
    dispatcher.greet()
    return client


def connect_to(record: InstanceRecord, on_event: EventCallback) -> RpcClient:
    """A client of the daemon; closing it leaves the conversations open."""
    from websockets.exceptions import (  # noqa: PLC0415 - not needed in-process
        ConnectionClosed,
        WebSocketException,
    )
    from websockets.sync.client import connect  # noqa: PLC0415 - as above

    stack = contextlib.ExitStack()
    try:
        connection = stack.enter_context(
            connect(
                record.url,
                additional_headers={"Authorization": f"Bearer {record.token}"},
                compression=None,
                max_size=None,  # a long history is one response
                proxy=None,
            )
        )
    except (OSError, WebSocketException) as error:
        raise RpcError(CRASHED, f"daemon at {record.url} unreachable: {error}") from error

    def send(line: bytes) -> None:
        try:
            connection.send(line.decode())
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from error

    client = RpcClient(send, on_event)

    def read() -> None:
        try:
            for message in connection:
                client.receive(message)
        except (ConnectionClosed, OSError) as error:
            log.info("daemon connection closed: %s", error)
        finally:
            client.lose()

    client.close = stack.close
    threading.Thread(target=read, name="hermes-link", daemon=True).start()
    return client
