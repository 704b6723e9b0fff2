"""Clients of the daemon of a test's Hermes folder, and its shutdown."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
from typing import TYPE_CHECKING, Any

from hermes_core.instance_record import DAEMON
from support.waiting import PATIENCE_SECONDS, wait_until
from tui_gateway import daemon
from tui_gateway.methods import EVENTS, METHODS
from tui_gateway.protocol import ConnectionLost, payload_of, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_gateway.protocol import ClientEvent


@contextlib.contextmanager
def stopping_daemon() -> Iterator[None]:
    """Stop the daemon that a test started, if any."""
    try:
        yield
    finally:
        record = DAEMON.find()
        if record is not None:
            os.kill(record.pid, signal.SIGTERM)
            wait_until(lambda: DAEMON.find() is None)


class DaemonClient:
    """A client of the daemon."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._client = daemon.connect_to_daemon(self._on_event)
        self.live = ""

    def _on_event(self, _session: str, event: ClientEvent) -> None:
        payload = json.loads(json.dumps(payload_of(event), default=to_json))
        if event.kind != ConnectionLost.kind:
            assert set(payload) == set(EVENTS[event.kind].payload), event.kind
        self._events.put((event.kind, payload))

    def call(self, method: str, **params: Any) -> Any:
        if self.live:
            params.setdefault("session_id", self.live)
        result = self._client.call(method, **params)
        assert set(result) <= set(METHODS[method].returns), method
        return result

    def open(self, method: str = "session.create", **params: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.call(method, **params)
        self.live = result["session_id"]
        return result

    def wait_for(self, event_kind: str) -> dict[str, Any]:
        while True:
            kind, payload = self._events.get(timeout=PATIENCE_SECONDS)
            if kind == event_kind:
                return payload

    def text_until(self, word: str) -> str:
        text = ""
        while word not in text:
            text += self.wait_for("message.delta")["text"]
        return text

    def close(self) -> None:
        """Disconnect, as a closed window does."""
        self._client.close()
