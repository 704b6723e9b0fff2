"""Finds the routes of a resource by the first two parts of a path.

FastAPI compares a path with one route after the other; with a hundred of them that costs more
than a small request does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send


class RouteIndex:
    """Dispatches a request to the routes that begin like its path, else to *fallback*."""

    def __init__(self, routes: Iterable[BaseRoute], fallback: ASGIApp) -> None:
        self._fallback = fallback
        grouped: dict[str, list[BaseRoute]] = {}
        for route in routes:
            start = _start_of(getattr(route, "path", ""))
            if start and "{" not in start:
                grouped.setdefault(start, []).append(route)
        self._routers = {start: _router(found, fallback) for start, found in grouped.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        router = self._routers.get(_start_of(scope.get("path", "")))  # a lifespan has no path
        await (self._fallback if router is None else router.app)(scope, receive, send)


def _router(routes: list[BaseRoute], fallback: ASGIApp) -> APIRouter:
    """A router of some routes; what it does not know is left to *fallback*."""
    router = APIRouter(default=fallback, redirect_slashes=False)
    router.routes.extend(routes)
    return router


def _start_of(path: str) -> str:
    """`/api/sessions` of `/api/sessions/1/messages`."""
    return "/".join(path.split("/", 3)[:3])
