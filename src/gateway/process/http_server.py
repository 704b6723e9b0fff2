"""The HTTP server of the gateway, shared by webhook platforms and the health endpoints.

Platforms add their routes when they connect and remove them when they disconnect. By default
the server listens on loopback only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hermes_core.errors import PlatformDownError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from hermes_core.uvicorn_server import UvicornServer


SHUTDOWN_SECONDS: Final = 5


class HttpServer:
    """Routes by owner; the server starts with the first routes."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port  # 0 picks a free port, set once the server listens
        self._routes: dict[str, list[BaseRoute]] = {}
        self._app: Starlette | None = None
        self._server: UvicornServer | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The local URL of the server."""
        return f"http://{self.host}:{self.port}"

    async def add(self, name: str, routes: Sequence[BaseRoute]) -> None:
        """Serve the routes of an owner."""
        self._routes[name] = list(routes)
        self._apply_routes()
        if self._task is None:
            await self._serve()

    def remove(self, name: str) -> None:
        """Remove the routes of an owner."""
        self._routes.pop(name, None)
        self._apply_routes()

    def _apply_routes(self) -> None:
        if self._app is not None:
            self._app.router.routes[:] = [item for owned in self._routes.values() for item in owned]

    async def _serve(self) -> None:
        from starlette.applications import Starlette  # noqa: PLC0415 - only needed if something is served

        from hermes_core import uvicorn_server  # noqa: PLC0415 - as above

        sock = self._listen(uvicorn_server.listen)
        self._app = Starlette()
        self._server = uvicorn_server.make_server(
            self._app,
            handles_signals=False,  # the gateway handles its signals itself
            lifespan="off",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self._apply_routes()
        self._task = asyncio.create_task(self._server.serve([sock]))
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    def _listen(self, listen: Callable[[str, int], socket.socket]) -> socket.socket:
        try:
            sock = listen(self.host, self.port)
        except OSError as error:
            text = f"Cannot listen on {self.host}:{self.port}: {error.strerror or error}"
            raise PlatformDownError(text) from error
        self.port = sock.getsockname()[1]
        return sock

    async def close(self) -> None:
        """Stop serving; open requests get a few seconds to finish."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._task = self._server = self._app = None
