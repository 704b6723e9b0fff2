"""The dashboard's resources on a real server, without the gate in front of them."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import uvicorn
from fastapi import FastAPI

from hermes_dashboard import errors
from hermes_dashboard.context import DashboardContext

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from hermes_state import SessionDB


class QuietGateway:
    """A gateway that says what a test tells it to."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {"is_running": False, "platforms": []}
        self.wrong: list[dict[str, Any]] = []
        self.routes: list[dict[str, Any]] = []

    def state(self) -> dict[str, Any]:
        return self.told

    def errors(self, limit: int) -> list[dict[str, Any]]:
        return self.wrong[:limit]

    def chats(self, limit: int) -> list[dict[str, Any]]:
        return self.routes[:limit]


@contextlib.contextmanager
def serving(
    db: SessionDB, home: Path, *resources: ModuleType, gateway: QuietGateway | None = None
) -> Iterator[httpx.Client]:
    """A real server on loopback with these resources, and a client."""
    app = FastAPI()
    errors.install(app)
    parts = DashboardContext(db, home, gateway or QuietGateway(), models=list)
    for resource in resources:
        app.include_router(resource.router(parts))
    listening = socket.create_server(("127.0.0.1", 0))
    # Inherited by what is accepted; asyncio sees to it only where the protocol is named.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address, timeout=60) as client:
            while not server.started:
                time.sleep(0.01)
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
