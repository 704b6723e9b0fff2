"""Metrics of the dashboard server, for `/metrics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hermes_core.metrics import MetricsRegistry

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKET_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
UNKNOWN_ROUTE: Final = "unknown"


class DashboardMetrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self.requests = self.registry.counter(
            "hermes_dashboard_requests",
            "Requests, by route and status.",
            ["method", "route", "status"],
        )
        self.seconds = self.registry.histogram(
            "hermes_dashboard_request_seconds", "Response time by route.", BUCKET_SECONDS, ["route"]
        )
        self.listeners = self.registry.gauge(
            "hermes_dashboard_live_listeners", "Pages that receive live updates."
        )
        self.sockets = self.registry.gauge(
            "hermes_dashboard_open_sockets", "Open WebSocket connections."
        )


class MetricsMiddleware:
    """Counts requests and measures response times."""

    def __init__(self, app: ASGIApp, metrics: DashboardMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        started_at = time.monotonic()

        async def send_tracked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_tracked)
        finally:
            route = route_of(scope)
            self._metrics.requests.labels(scope["method"], route, status).inc()
            if route != LIVE_ROUTE:
                self._metrics.seconds.labels(route).observe(time.monotonic() - started_at)


LIVE_ROUTE: Final = "/api/live"  # a stream that lasts as long as the page is open


def route_of(scope: Scope) -> str:
    """The route's pattern: a label with a bounded number of values."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path else UNKNOWN_ROUTE
