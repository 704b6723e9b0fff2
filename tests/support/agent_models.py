"""A model for the programs of other agents: one answer in the APIs that they use, in full.

`ScriptServer` sends what Hermes reads; the clients in these programs need each event and field.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

MODEL: Final = "scripted"


class AgentModel:
    """Answers every request with the same text until it is closed; `requests` has the bodies."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self._server = _Server(self)
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
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

    def request_with(self, text: str) -> dict[str, Any]:
        """The last request whose body contains a text."""
        return next(each for each in reversed(self.requests) if text in json.dumps(each))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: AgentModel) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_arguments: object) -> None:
        """Write no access log."""

    def do_GET(self) -> None:
        """Serve the list of models."""
        self._send("application/json", json.dumps({"data": [{"id": MODEL}]}).encode())

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        events = next((each for end, each in APIS.items() if path.endswith(end)), None)
        if events is None:
            self._send("application/json", b'{"input_tokens": 10}')
            return
        owner = self.server.owner
        owner.requests.append(body)
        sent = b"".join(events(len(owner.requests), owner.answer))
        self._send("text/event-stream", sent)

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _anthropic(number: int, answer: str) -> Iterator[bytes]:
    usage = {"input_tokens": 11, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL,
               "content": [], "stop_reason": None, "usage": usage}  # fmt: skip
    yield _event("message_start", message=message)
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    delta = {"type": "text_delta", "text": answer}
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": 7})
    yield _event("message_stop")


def _responses(number: int, answer: str) -> Iterator[bytes]:
    content = [{"type": "output_text", "text": answer, "annotations": []}]
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
    tokens = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 0},
              "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0},
              "total_tokens": 18}  # fmt: skip
    yield _event("response.created", response={"id": f"resp_{number}"})
    yield _event("response.output_item.added", output_index=0, item={**item, "content": []})
    yield _event(
        "response.output_text.delta", output_index=0, item_id=f"msg_{number}", delta=answer
    )
    yield _event("response.output_item.done", output_index=0, item=item)
    yield _event("response.completed", response={"id": f"resp_{number}", "usage": tokens})


def _chat(number: int, answer: str) -> Iterator[bytes]:
    def chunk(**fields: Any) -> bytes:
        facts = {
            "id": f"chat_{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": MODEL,
        }
        return b"data: " + json.dumps({**facts, **fields}).encode() + b"\n\n"

    delta = {"role": "assistant", "content": answer}
    yield chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
    yield chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    yield chunk(choices=[], usage=usage)
    yield b"data: [DONE]\n\n"


APIS: Final = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
}
