"""The dashboard's resources on a real server, without authentication."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import httpx2 as httpx
import uvicorn
from fastapi import FastAPI

from hermes_dashboard import errors
from hermes_dashboard.context import DashboardContext
from hermes_dashboard.resources.gateway import GatewayAccess, GatewayStatus, LoggedError
from support.plain_http import NO_CERTIFICATES
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from gateway.outbound.direct_send import Channel
    from hermes_state import SessionDB


class FixedGateway(GatewayAccess):
    """A gateway whose state a test sets."""

    def __init__(self, db: SessionDB) -> None:
        super().__init__(db)
        self.current_state = GatewayStatus()
        self.error_rows: list[LoggedError] = []
        self.routes: list[Channel] = []

    def state(self) -> GatewayStatus:
        return self.current_state

    def errors(self, limit: int) -> list[LoggedError]:
        return self.error_rows[:limit]

    def chats(self, limit: int) -> list[Channel]:
        return self.routes[:limit]


@contextlib.contextmanager
def serve_resources(
    db: SessionDB, home: Path, *resources: ModuleType, gateway: FixedGateway | None = None
) -> Iterator[httpx.Client]:
    """Serve resources on loopback; yield a client."""
    app = FastAPI()
    errors.install(app)
    context = DashboardContext(db, home, gateway or FixedGateway(db), models=list)
    for resource in resources:
        app.include_router(resource.router(context))
    listener = socket.create_server(("127.0.0.1", 0))
    # Inherited by accepted sockets; asyncio sets it only where the protocol is named.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(
            base_url=address, timeout=PATIENCE_SECONDS, verify=NO_CERTIFICATES
        ) as client:
            while not server.started:
                time.sleep(0.01)
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=PATIENCE_SECONDS)
        listener.close()
