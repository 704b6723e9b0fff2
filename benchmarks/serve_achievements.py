"""The achievements plugin on a real server: prints its URL and serves until stopped."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI

API = Path(__file__).parents[1] / "plugins/hermes-achievements/dashboard/plugin_api.py"
PREFIX = "/api/plugins/hermes-achievements"


def main() -> None:
    """Start the server."""
    spec = importlib.util.spec_from_file_location("plugin_api", API)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = FastAPI()
    app.include_router(module.router, prefix=PREFIX)
    server_socket = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{server_socket.getsockname()[1]}{PREFIX}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[server_socket])


if __name__ == "__main__":
    main()
