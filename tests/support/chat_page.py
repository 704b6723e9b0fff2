"""The page's side of the chat: JSON-RPC over the WebSocket of the dashboard."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.dashboards import RunningDashboard


class Page:
    """The client side of the WebSocket."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.live = ""
        self._number = 0
        self._events: list[tuple[str, dict[str, Any]]] = []

    def send(self, method: str, **params: Any) -> int:
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.socket.send(json.dumps(frame))
        return self._number

    def error(self) -> dict[str, Any]:
        """The next error; events of the daemon may come before it."""
        while True:
            frame = self.receive()
            if "error" in frame:
                return dict(frame["error"])

    def receive(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.socket.recv(timeout=PATIENCE_SECONDS))
        return result

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            frame = self.receive()
            if frame.get("id") == number:
                return frame
            self._events.append((frame["params"]["type"], frame["params"]["payload"]))

    def call(self, method: str, **params: Any) -> Any:
        if self.live:
            params.setdefault("session_id", self.live)
        result = self.answer(self.send(method, **params))
        assert "error" not in result, result
        return result["result"]

    def open(self, method: str = "session.create", **params: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.call(method, **params)
        self.live = result["session_id"]
        return result

    def wait_for(self, wanted: str) -> dict[str, Any]:
        while True:
            if not self._events:
                params = self.receive()["params"]
                self._events.append((params["type"], params["payload"]))
            kind, payload = self._events.pop(0)
            if kind == wanted:
                return payload

    def text_until(self, word: str) -> str:
        shown = ""
        while word not in shown:
            shown += self.wait_for("message.delta")["text"]
        return shown


@contextmanager
def page(served: RunningDashboard, **options: Any) -> Iterator[Page]:
    headers = options.pop("headers", served.headers)
    with connect(
        served.socket_url, additional_headers=headers, proxy=None, max_size=None, **options
    ) as socket:
        yield Page(socket)
