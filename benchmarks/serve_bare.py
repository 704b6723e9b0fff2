"""A server with one small route: prints its URL and serves until stopped."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request


async def answer(_request: Request) -> JSONResponse:
    """The least that a route can do."""
    return JSONResponse({"status": "ok"})


def main() -> None:
    """Start the server."""
    app = Starlette(routes=[Route("/", answer)])
    server_socket = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{server_socket.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[server_socket])


if __name__ == "__main__":
    main()
