"""Vectors for tests: MiniLM if it was fetched, and an endpoint whose vectors count letters."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state.search.embedders import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Iterator

FETCHED = Path(__file__).resolve().parents[2] / ".models" / "libraries" / "minilm"
needs_minilm = pytest.mark.skipif(not FETCHED.is_dir(), reason="`make models` fetches MiniLM")


def install_minilm(home: Path) -> None:
    """Use the fetched model in a home."""
    (home / "libraries").mkdir()
    LIBRARY.folder.symlink_to(FETCHED)
    # NumPy stays in this process, and loads parts of itself later: not from a home that is gone.
    sys.path.append(str(FETCHED))
    importlib.import_module("numpy")
    sys.path.remove(str(FETCHED))


@contextmanager
def embedding_server() -> Iterator[tuple[str, list[Any]]]:
    """Its URL, and what it is asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers.get("Authorization"), body))
            data = [
                {"index": n, "embedding": [1.0 + text.lower().count(each) for each in "aeiounrst"]}
                for n, text in enumerate(body["input"])
            ]
            answer = json.dumps({"data": data[::-1]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
        server.shutdown()
