"""Servers on loopback with the API of a platform, and planned faults."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from aiohttp import web

Fault = TypeVar("Fault")


class LoopbackServer(Generic[Fault]):
    """A server that can be stopped and restarted on the same port."""

    cancels_disconnected = False

    def __init__(self) -> None:
        self.port = 0
        self._faults: dict[str, list[Fault]] = {}
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    def routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes of the server."""
        raise NotImplementedError

    def cut_connections(self) -> None:
        """Abort every open connection."""

    async def start(self) -> None:
        app = web.Application(client_max_size=100_000_000)
        self.routes(app.router)
        # No access log: it would contain tokens.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=self.cancels_disconnected,
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.cut_connections()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plan(self, route: str, *faults: Fault) -> None:
        """Plan faults for the next requests of a route; each occurs once."""
        self._faults.setdefault(route, []).extend(faults)

    def next_fault(self, route: str) -> Fault | None:
        """Consume the next planned fault of a route."""
        faults = self._faults.get(route)
        return faults.pop(0) if faults else None


def abort_connection(request: web.Request) -> None:
    """Abort the connection of a request."""
    if request.transport is not None:
        request.transport.abort()
