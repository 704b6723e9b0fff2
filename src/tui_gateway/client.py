"""The client's end: ask and wait for the answer, and hear of what happens.

A link to a hub in this process and one to the daemon are the same to whoever uses them.
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.instance_record import InstanceRecord
    from tui_gateway.hub import Hub

    Hear = Callable[[str, str, dict[str, Any]], object]  # kind, session, payload

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 3600.0  # a model may sum up for long; a lost connection is told at once
GONE: Final = "gateway.gone"  # heard when the connection is lost


class RpcClient:
    """Requests to a server, and what it tells."""

    def __init__(
        self, send: Callable[[bytes], object], hear: Hear, *, is_here: bool = False
    ) -> None:
        self.is_here = is_here  # what runs ends with this process
        self._send = send
        self._hear = hear
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self.close: Callable[[], object] = lambda: None  # what letting go means

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request; RpcError when it failed."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._lock:
            self._waiting[number] = future
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            self._send(encode(request))
            return future.result(timeout=ANSWER_SECONDS)
        except FutureTimeoutError:
            raise RpcError(CRASHED, f"{method} was not answered in time") from None
        except OSError as error:
            raise RpcError(CRASHED, f"the connection is lost: {error}") from error
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def take(self, line: bytes | str) -> None:
        """A frame has come."""
        frame = json.loads(line)
        if frame.get("method") == "event":
            params = frame["params"]
            self._hear(params["type"], params["session_id"], params["payload"])
            return
        with self._lock:
            future = self._waiting.get(frame.get("id"))
        if future is None:
            return
        if "error" in frame:
            future.set_exception(RpcError(frame["error"]["code"], frame["error"]["message"]))
        else:
            future.set_result(frame["result"])

    def lose(self) -> None:
        """The connection is gone: nobody waits any more."""
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            if not future.done():
                future.set_exception(RpcError(CRASHED, "the connection is lost"))
        self._hear(GONE, "", {})


def here(hub: Hub, hear: Hear) -> RpcClient:
    """A link to a hub of this process; letting go ends its conversations."""
    from tui_gateway.dispatcher import Dispatcher  # noqa: PLC0415 - clients of a daemon need none

    link = RpcClient(lambda line: peer.take(line), hear, is_here=True)  # noqa: PLW0108 - there is none yet
    peer = Dispatcher(hub, link.take)
    link.close = lambda: hub.close_all("tui_close")
    peer.greet()
    return link


def to_daemon(place: InstanceRecord, hear: Hear) -> RpcClient:
    """A link to the daemon; letting go leaves its conversations as they are."""
    from websockets.exceptions import (  # noqa: PLC0415 - in-process needs none
        ConnectionClosed,
        WebSocketException,
    )
    from websockets.sync.client import connect  # noqa: PLC0415 - as above

    held = contextlib.ExitStack()
    try:
        connection = held.enter_context(
            connect(
                place.url,
                additional_headers={"Authorization": f"Bearer {place.token}"},
                compression=None,
                max_size=None,  # a long history is one answer
                proxy=None,
            )
        )
    except (OSError, WebSocketException) as error:
        raise RpcError(CRASHED, f"the daemon at {place.url} does not answer: {error}") from error

    def send(line: bytes) -> None:
        try:
            connection.send(line.decode())
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from error

    link = RpcClient(send, hear)

    def read() -> None:
        try:
            for message in connection:
                link.take(message)
        except (ConnectionClosed, OSError) as error:
            log.info("the daemon is gone: %s", error)
        finally:
            link.lose()

    link.close = held.close
    threading.Thread(target=read, name="hermes-link", daemon=True).start()
    return link
