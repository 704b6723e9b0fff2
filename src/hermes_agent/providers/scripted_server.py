"""A scripted model behind a real HTTP server on loopback, as OpenAI and Anthropic speak.

What tests exercise is then the real client, over a real connection. Every request is
kept, so that it can be compared with what was shown.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from hermes_agent.providers.scripted import count_usage

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hermes_agent.providers.scripted import ModelScript, ScriptStep

PROMPT_PATHS = ("/chat/completions", "/messages")


class ScriptServer:
    """Serves a script until it is closed; `requests` is what was asked."""

    def __init__(
        self, script: ModelScript, model: str = "scripted", log: Path | None = None
    ) -> None:
        self.requests: list[dict[str, Any]] = []
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

    def serve(self) -> None:
        """Serve in this thread, until the process ends."""
        self._server.serve_forever()

    def note(self, body: dict[str, Any]) -> None:
        """Keep a request."""
        self.requests.append(body)
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(body) + "\n")

    def take(self, body: dict[str, Any]) -> tuple[int, ScriptStep]:
        """The step that answers *body*."""
        return self._script.take(body.get("messages") or [])


class _Server(ThreadingHTTPServer):
    """The server behind it, which its handlers know."""

    daemon_threads = True

    def __init__(self, owner: ScriptServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_arguments: object) -> None:
        """Nobody reads these."""

    def do_GET(self) -> None:
        """The list of models; nothing else is known here."""
        if not self.path.endswith("/models"):
            self._json({"error": {"message": "not found"}}, 404)
            return
        self._json({"object": "list", "data": [{"id": self.server.owner.model, "object": "model"}]})

    def do_POST(self) -> None:
        """A question."""
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        if not self.path.endswith(PROMPT_PATHS):
            self._json({"error": {"message": "not found"}}, 404)
            return
        self.server.owner.note(body)
        number, step = self.server.owner.take(body)
        if step.fail is not None:
            self._fail(step.fail)
            return
        time.sleep(step.hang)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            if self.path.endswith("/messages"):
                self._play_blocks(body, number, step)
            else:
                self._play(body, number, step)
        except (BrokenPipeError, ConnectionResetError):
            return  # whoever asked has hung up

    def _fail(self, fail: dict[str, Any]) -> None:
        status = int(fail.get("status", 500))
        headers = {}
        if "retry_after" in fail:
            headers["Retry-After"] = str(fail["retry_after"])
        self._json({"error": {"message": fail.get("message", "scripted")}}, status, headers)

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _play(self, body: dict[str, Any], number: int, step: ScriptStep) -> None:
        if step.think:
            self._delta({"reasoning_content": step.think})
        for word in step.words():
            time.sleep(step.pause)
            self._delta({"content": word})
        if step.cut:
            return
        for index, call in enumerate(step.tool_calls(number)):
            self._delta({"tool_calls": [{"index": index, **call.stored()}]})
        finish = "tool_calls" if step.calls else "stop"
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        usage = count_usage(body.get("messages") or [], step.say)
        tokens: dict[str, Any] = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
        }
        if step.cost is not None:
            tokens["cost"] = step.cost
        self._send({"choices": [], "usage": tokens})
        self.wfile.write(b"data: [DONE]\n\n")

    def _delta(self, delta: dict[str, Any]) -> None:
        self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _send(self, chunk: dict[str, Any]) -> None:
        full = {"id": "scripted", "object": "chat.completion.chunk", **chunk}
        self.wfile.write(b"data: " + json.dumps(full).encode() + b"\n\n")
        self.wfile.flush()

    def _play_blocks(self, body: dict[str, Any], number: int, step: ScriptStep) -> None:
        """The same step in Anthropic's words."""
        usage = count_usage(body.get("messages") or [], step.say)
        started = {"usage": {"input_tokens": usage.input, "cache_read_input_tokens": 0}}
        self._event("message_start", message=started)
        deltas = [("thinking_delta", "thinking", step.think)] if step.think else []
        deltas += [("text_delta", "text", word) for word in step.words() if word]
        for kind, field, text in deltas:
            time.sleep(step.pause)
            delta = {"type": kind, field: text}
            self._event("content_block_delta", index=0, delta=delta)
        if step.cut:
            return
        for index, call in enumerate(step.tool_calls(number), 1):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            self._event("content_block_start", index=index, content_block=block)
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            self._event("content_block_delta", index=index, delta=delta)
        reason = "tool_use" if step.calls else "end_turn"
        output = {"output_tokens": usage.output}
        self._event("message_delta", delta={"stop_reason": reason}, usage=output)
        self._event("message_stop")

    def _event(self, kind: str, **facts: Any) -> None:
        data = json.dumps({"type": kind, **facts})
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()
