"""A JSON-RPC client of the real server process."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from typing import Any

from support.command_line import DAEMON_MODULES, start_program
from support.waiting import PATIENCE_SECONDS
from tui_gateway import openrpc
from tui_gateway.methods import METHODS

STDERR = 2


class RpcClient:
    """Starts the server, sends requests and collects the frames."""

    def __init__(self) -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        self.stdin = os.fdopen(in_write, "wb")
        self._stdout = os.fdopen(out_read, "rb")
        try:
            self.process = start_program(
                "tui_gateway.entry",
                streams=(out_write, STDERR),
                stdin=in_read,
                preloaded=DAEMON_MODULES,
            )
        finally:
            os.close(in_read)
            os.close(out_write)
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._stdout:
            self._frames.put(json.loads(line))
        self._frames.put(None)

    def send(self, data: bytes) -> None:
        self.stdin.write(data + b"\n")
        self.stdin.flush()

    def next(self) -> dict[str, Any]:
        frame = self._frames.get(timeout=PATIENCE_SECONDS)
        assert frame is not None, "the server has exited"
        if frame.get("method") == "event":
            event = frame["params"]
            assert set(event["payload"]) == set(
                openrpc.fields_of_type(openrpc.EVENTS[event["type"]])
            ), event
            self.events.append(event)
        return frame

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its response; events in between are collected."""
        number = self.request(method, **params)
        while True:
            frame = self.next()
            if frame.get("id") == number and "method" not in frame:
                return frame

    def request(self, method: str, **params: Any) -> int:
        """Send a request without waiting; returns its ID."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send(json.dumps(request).encode())
        return self._number

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request; it has only documented fields."""
        response = self.ask(method, **params)
        assert "result" in response, response
        assert set(response["result"]) <= openrpc.result_fields(METHODS[method]), method
        return response["result"]

    def wait_for(self, kind: str) -> dict[str, Any]:
        """Wait for an event of a kind; its payload."""
        for event in self.events:
            if event["type"] == kind:
                self.events.remove(event)
                return dict(event["payload"])
        while True:
            frame = self.next()
            if frame.get("method") == "event" and frame["params"]["type"] == kind:
                self.events.remove(frame["params"])
                return dict(frame["params"]["payload"])

    def text_until(self, word: str) -> str:
        """The streamed text up to a word."""
        text = ""
        while word not in text:
            text += self.wait_for("message.delta")["text"]
        return text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        self._stdout.close()
        with contextlib.suppress(BrokenPipeError):  # a request that was not read
            self.stdin.close()
