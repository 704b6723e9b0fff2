"""Health and metrics endpoints: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hermes_core.metrics import CONTENT_TYPE, MetricsRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric
    from starlette.requests import Request

    from gateway.status import RuntimePlatform
    from hermes_state import SessionDB

TURN_SECONDS_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class GatewayMetrics:
    """The counters of a running gateway."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self.received = self.registry.counter(
            "hermes_messages_received", "Messages stored in the inbox.", ["platform"]
        )
        self.sent = self.registry.counter(
            "hermes_replies_sent", "Attempts to send a reply, by outcome.", ["platform", "outcome"]
        )
        self.turn_seconds = self.registry.histogram(
            "hermes_turn_seconds",
            "Seconds from claiming a message to its reply.",
            TURN_SECONDS_BUCKETS,
        )


class _GaugeCollector(Collector):
    """Collects the gauges when they are scraped."""

    def __init__(self, endpoints: HealthEndpoints) -> None:
        self._endpoints = endpoints

    def describe(self) -> list[Metric]:
        """Empty: the gauges are only known when they are scraped."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges."""
        return self._endpoints.gauges()


class HealthEndpoints:
    """Serves health, readiness and metrics."""

    def __init__(
        self,
        db: SessionDB,
        metrics: GatewayMetrics,
        states: Callable[[], dict[str, RuntimePlatform]],
        running: Callable[[], int],
    ) -> None:
        self._db = db
        self._gateway_metrics = metrics
        self._states = states
        self._running = running
        self._started = time.time()
        self.is_draining = False
        metrics.registry.collectors.register(_GaugeCollector(self))

    def routes(self) -> list[Route]:
        """The HTTP routes."""
        return [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
        ]

    async def _health(self, _request: Request) -> Response:
        """Whether the process works: its event loop responds and the store is readable."""
        waiting = await run_in_threadpool(self._db.inbox.waiting_places)
        return JSONResponse({"status": "ok", "waiting_chats": waiting})

    async def _ready(self, _request: Request) -> Response:
        """Whether every platform is connected and the gateway is not draining."""
        states = self._states()
        is_ready = not self.is_draining and all(
            state["state"] == "connected" for state in states.values()
        )
        status = "draining" if self.is_draining else "ready" if is_ready else "degraded"
        return JSONResponse(
            {"status": status, "platforms": states}, status_code=200 if is_ready else 503
        )

    async def _metrics(self, _request: Request) -> Response:
        text = await run_in_threadpool(self._gateway_metrics.registry.render)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    def gauges(self) -> Iterator[Metric]:
        """The current values."""
        connected = GaugeMetricFamily(
            "hermes_platform_connected", "1 while a platform is connected.", labels=["platform"]
        )
        for name, state in self._states().items():
            connected.add_metric([name], float(state["state"] == "connected"))
        yield connected
        yield from self._mail_gauges()
        oldest = self._db.chats.oldest_waiting()
        age = time.time() - oldest if oldest is not None else 0.0
        yield _gauge("hermes_oldest_waiting_seconds", "Age of the oldest waiting message.", age)
        yield _gauge("hermes_turns_running", "Turns that are running.", self._running())
        commits = "Transactions that the gateway has committed."
        yield CounterMetricFamily("hermes_store_commits", commits, value=self._db.engine.commits)
        yield _gauge(
            "hermes_uptime_seconds",
            "Seconds since the gateway started.",
            time.time() - self._started,
        )

    def _mail_gauges(self) -> Iterator[Metric]:
        for box, counts in self._db.chats.mail_counts().items():
            gauge = GaugeMetricFamily(
                f"hermes_{box}", f"Messages in the {box}, by state.", labels=["platform", "state"]
            )
            for labels, count in counts.items():
                gauge.add_metric(list(labels), count)
            yield gauge


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=value)
