"""A scripted model behind a real HTTP server on loopback, with the APIs of all providers.

It refuses what a provider would refuse: see `support.dialects`.

Tests exercise the real client over a real connection. Every request is recorded, so that
it can be compared with what was displayed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from hermes_agent.providers.scripted import count_usage
from hermes_core.json_values import number_in, objects_in
from support.dialect_answers import ANSWERS
from support.dialects import of_path

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hermes_agent.messages import Message, ToolCall
    from hermes_agent.providers.scripted import ModelScript, ScriptStep
    from hermes_core.json_values import JsonObject
    from support.dialects import Dialect

PROMPT_PATHS = ("/chat/completions", "/messages", "/responses", ":streamGenerateContent?alt=sse")


class ScriptServer:
    """Serves a script until it is closed; `requests` holds the request bodies."""

    def __init__(
        self,
        script: ModelScript,
        model: str = "scripted",
        log: Path | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        self.dialect = dialect
        self.violations: list[str] = []  # of the rules of the provider
        self._spoken: set[str] = set()  # reasoning that was sent
        self.requests: list[JsonObject] = []
        self.headers: list[dict[str, str]] = []  # of the requests
        self.models: list[JsonObject] = [{"id": model, "object": "model"}]
        self.model = model
        self._script = script
        self._log = log
        self._server = _Server(self)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.disconnect_all()
        if error is None and self.violations:
            raise AssertionError(f"a provider would refuse this: {self.violations}")

    @property
    def connections(self) -> int:
        """How many connections were accepted."""
        return len(self._server.accepted)

    def serve(self) -> None:
        """Serve in this thread, until the process ends."""
        self._server.serve_forever()

    def record(self, body: JsonObject, headers: dict[str, str]) -> None:
        """Record a request."""
        self.headers.append(headers)
        self.requests.append(body)
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(body) + "\n")

    def problem(self, path: str, body: JsonObject) -> str:
        """Why a provider would refuse a request; empty if it would not."""
        problem = (self.dialect or of_path(path, self._spoken)).problem(body)
        if problem:
            self.violations.append(problem)
        return problem

    def next_step(self, body: JsonObject) -> tuple[int, ScriptStep]:
        """Consume the step that answers *body*."""
        number, step = self._script.next_step(_messages(body))
        self._spoken.add(step.think)
        return number, step


class _Server(ThreadingHTTPServer):
    """The HTTP server; its handlers reach the script through `owner`."""

    daemon_threads = True

    def __init__(self, owner: ScriptServer) -> None:
        self.owner = owner
        self.accepted: list[socket.socket] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        connection, address = super().get_request()
        self.accepted.append(connection)
        return connection, address

    def disconnect_all(self) -> None:
        """End the connections that clients keep open."""
        for connection in self.accepted:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Handles one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_arguments: object) -> None:
        """Write no access log."""

    def do_GET(self) -> None:
        """Serve the list of models; other paths are 404."""
        if not self.path.partition("?")[0].endswith("/models"):
            self._send_json({"error": {"message": "not found"}}, 404)
            return
        self._send_json({"object": "list", "data": self.server.owner.models})

    def do_POST(self) -> None:
        """Answer a completion request."""
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        if len(data) < length:  # the client died while it was sending
            self.close_connection = True
            return
        body = json.loads(data or b"{}")
        if not self.path.endswith(PROMPT_PATHS):
            self._send_json({"error": {"message": "not found"}}, 404)
            return
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.owner.record(body, headers)
        if problem := self.server.owner.problem(self.path, body):
            self._send_json({"error": {"message": problem}}, 400)
            return
        number, step = self.server.owner.next_step(body)
        if step.fail is not None:
            self._fail(step.fail)
            return
        time.sleep(step.hang)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            dialect = self.server.owner.dialect
            if dialect is not None:
                for piece in ANSWERS[dialect.api](dialect, number, step):
                    self._write(piece)
            elif self.path.endswith("/messages"):
                self._stream_events(body, number, step)
            else:
                self._stream_chunks(body, number, step)
            if step.cut:
                self.close_connection = True
            else:
                self._write(b"")  # the end of the body
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has disconnected

    def _write(self, data: bytes) -> None:
        """Write one chunk of the body."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _fail(self, fail: JsonObject) -> None:
        status = number_in(fail, "status", 500)
        names = {"retry_after": "Retry-After", "request_id": "x-request-id"}
        headers = {header: str(fail[name]) for name, header in names.items() if name in fail}
        if "body" in fail:
            kind = str(fail.get("content_type", "text/html"))
            self._send(str(fail["body"]).encode(), kind, status, headers)
            return
        error = {name: fail[name] for name in ("code", "type") if name in fail}
        message = fail.get("message", "scripted")
        self._send_json({"error": {"message": message, **error}}, status, headers)

    def _send_json(
        self, value: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._send(json.dumps(value).encode(), "application/json", status, headers or {})

    def _send(self, data: bytes, kind: str, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream_chunks(self, body: JsonObject, number: int, step: ScriptStep) -> None:
        if step.think:
            self._send_delta({"reasoning_content": step.think})
        for word in step.words():
            time.sleep(step.pause)
            self._send_delta({"content": word})
        if step.cut:
            return
        for index, call in enumerate(step.tool_calls(number)):
            self._send_delta({"tool_calls": [{"index": index, **call_fields(call)}]})
        ended: JsonObject = {"index": 0, "delta": {}, "finish_reason": step.finish_reason}
        self._send_chunk({"choices": [ended]})
        usage = count_usage(_messages(body), step.say)
        tokens: JsonObject = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
        }
        if step.cost is not None:
            tokens["cost"] = step.cost
        self._send_chunk({"choices": [], "usage": tokens})
        self._write(b"data: [DONE]\n\n")

    def _send_delta(self, delta: JsonObject) -> None:
        self._send_chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _send_chunk(self, chunk: JsonObject) -> None:
        data = {"id": "scripted", "object": "chat.completion.chunk", **chunk}
        self._write(b"data: " + json.dumps(data).encode() + b"\n\n")

    def _stream_events(self, body: JsonObject, number: int, step: ScriptStep) -> None:
        """Stream a step in Anthropic's format."""
        usage = count_usage(_messages(body), step.say)
        message = {"usage": {"input_tokens": usage.input, "cache_read_input_tokens": 0}}
        self._send_event("message_start", message=message)
        if step.think:
            self._send_thinking(step.think)
        deltas = [("text_delta", "text", word) for word in step.words() if word]
        for kind, field, text in deltas:
            time.sleep(step.pause)
            delta = {"type": kind, field: text}
            self._send_event("content_block_delta", index=1, delta=delta)
        if step.cut:
            return
        for index, call in enumerate(step.tool_calls(number), 2):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            self._send_event("content_block_start", index=index, content_block=block)
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            self._send_event("content_block_delta", index=index, delta=delta)
        reason = step.finish or ("tool_use" if step.calls else "end_turn")
        output = {"output_tokens": usage.output}
        self._send_event("message_delta", delta={"stop_reason": reason}, usage=output)
        self._send_event("message_stop")

    def _send_thinking(self, text: str) -> None:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        self._send_event("content_block_start", index=0, content_block=block)
        deltas = {"thinking_delta": {"thinking": text}, "signature_delta": {"signature": "signed"}}
        for kind, fields in deltas.items():
            delta = {"type": kind, **fields}
            self._send_event("content_block_delta", index=0, delta=delta)

    def _send_event(self, kind: str, **fields: Any) -> None:
        data = json.dumps({"type": kind, **fields})
        self._write(f"event: {kind}\ndata: {data}\n\n".encode())


def _messages(body: JsonObject) -> list[Message]:
    return cast("list[Message]", objects_in(body, "messages"))


def call_fields(call: ToolCall) -> JsonObject:
    """A tool call in the format of the API."""
    function: JsonObject = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
