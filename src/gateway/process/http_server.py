"""The gateway's web server: one address for all platforms that call us, and for those who watch.

Platforms add their routes when they connect and take them away when they disconnect. It
listens on this machine only, unless the user says otherwise.
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
    """Routes by who added them; served when there are any."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port  # 0 takes a free one, which is here once it serves
        self._routes: dict[str, list[BaseRoute]] = {}
        self._app: Starlette | None = None
        self._server: UvicornServer | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it is reached from this machine."""
        return f"http://{self.host}:{self.port}"

    async def add(self, name: str, routes: Sequence[BaseRoute]) -> None:
        """Serve the routes of a platform."""
        self._routes[name] = list(routes)
        self._show()
        if self._task is None:
            await self._serve()

    def remove(self, name: str) -> None:
        """Serve them no more."""
        self._routes.pop(name, None)
        self._show()

    def _show(self) -> None:
        if self._app is not None:
            self._app.router.routes[:] = [one for some in self._routes.values() for one in some]

    async def _serve(self) -> None:
        from starlette.applications import Starlette  # noqa: PLC0415 - only where something is served

        from hermes_core import uvicorn_server  # noqa: PLC0415 - as above

        listening = self._listen(uvicorn_server.listen)
        self._app = Starlette()
        self._server = uvicorn_server.make_server(
            self._app,
            handles_signals=False,  # the gateway handles its signals itself
            lifespan="off",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self._show()
        self._task = asyncio.create_task(self._server.serve([listening]))
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    def _listen(self, listen: Callable[[str, int], socket.socket]) -> socket.socket:
        try:
            found = listen(self.host, self.port)
        except OSError as error:
            text = f"Cannot listen on {self.host}:{self.port}: {error.strerror or error}"
            raise PlatformDownError(text) from error
        self.port = found.getsockname()[1]
        return found

    async def close(self) -> None:
        """Stop serving; what is being answered is given a moment."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._task = self._server = self._app = None
