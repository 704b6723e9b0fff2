"""Servers on loopback that speak as a platform does, with faults that a test plans."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from aiohttp import web

Fault = TypeVar("Fault")


class LoopbackServer(Generic[Fault]):
    """A server, which can be stopped and started again on the same port."""

    cancels_who_is_gone = False

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
        """Add what is served."""
        raise NotImplementedError

    def cut(self) -> None:
        """Every connection that stays open breaks."""

    async def start(self) -> None:
        app = web.Application(client_max_size=100_000_000)
        self.routes(app.router)
        # No log of requests: it would have tokens in it.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=self.cancels_who_is_gone,
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plan(self, route: str, *faults: Fault) -> None:
        """Plan what happens to the next requests of a route; each happens once."""
        self._faults.setdefault(route, []).extend(faults)

    def planned(self, route: str) -> Fault | None:
        """What happens to a request."""
        waiting = self._faults.get(route)
        return waiting.pop(0) if waiting else None


def abort(request: web.Request) -> None:
    """A connection ends in the middle of whatever it is at."""
    if request.transport is not None:
        request.transport.abort()
