"""A model server that answers with given bytes, whatever they are."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answers(http.server.ThreadingHTTPServer):
    """Answers each request with the body that a test has set."""

    daemon_threads = True
    body = b""
    later_body: bytes | None = None  # of all requests after the first
    content_type = ""
    missing_bytes = 0  # that are announced and not sent
    is_silent = False  # the connection stays open without an answer

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_over = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Answers

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.is_silent:
            self.server.is_over.wait()
            return
        body = self.server.body
        if self.server.later_body is not None:
            self.server.body = self.server.later_body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + self.server.missing_bytes))
        if self.server.content_type:
            self.send_header("Content-Type", self.server.content_type)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.server.missing_bytes > 0

    def log_message(self, *_arguments: Any) -> None:
        pass


@contextmanager
def running_answers() -> Iterator[Answers]:
    """A server in a thread."""
    with Answers() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.is_over.set()
            server.shutdown()
