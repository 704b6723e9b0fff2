"""How the gateway fares, for those who watch it: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hermes_core.metrics import CONTENT_TYPE, MetricsRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric
    from starlette.requests import Request

    from hermes_state import SessionDB

SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


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
            "hermes_turn_seconds", "From claiming a message to its reply.", SECONDS
        )


class _Present(Collector):
    """What is so at the moment it is asked for."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def describe(self) -> list[Metric]:
        """Nothing beforehand: it is known when it is asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges."""
        return self._watching.gauges()


class Watching:
    """Answers those who watch."""

    def __init__(
        self,
        db: SessionDB,
        meters: GatewayMetrics,
        states: Callable[[], dict[str, dict[str, Any]]],
        running: Callable[[], int],
    ) -> None:
        self._db = db
        self._meters = meters
        self._states = states
        self._running = running
        self._started = time.time()
        self.is_leaving = False
        meters.registry.collectors.register(_Present(self))

    def routes(self) -> list[Route]:
        """What the web server serves of it."""
        return [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
        ]

    async def _health(self, _request: Request) -> Response:
        """Whether the process works: its loop answers, and the store can be read."""
        waiting = await run_in_threadpool(self._db.waiting_places)
        return JSONResponse({"status": "ok", "waiting_chats": waiting})

    async def _ready(self, _request: Request) -> Response:
        """Whether messages are taken in, on every platform."""
        states = self._states()
        is_ready = not self.is_leaving and all(
            one["state"] == "connected" for one in states.values()
        )
        status = "draining" if self.is_leaving else "ready" if is_ready else "degraded"
        return JSONResponse(
            {"status": status, "platforms": states}, status_code=200 if is_ready else 503
        )

    async def _metrics(self, _request: Request) -> Response:
        text = await run_in_threadpool(self._meters.registry.render)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    def gauges(self) -> Iterator[Metric]:
        """What is so now."""
        connected = GaugeMetricFamily(
            "hermes_platform_connected", "1 while a platform is connected.", labels=["platform"]
        )
        for name, state in self._states().items():
            connected.add_metric([name], float(state["state"] == "connected"))
        yield connected
        yield from self._boxes()
        oldest = self._db.oldest_waiting()
        age = time.time() - oldest if oldest is not None else 0.0
        yield _gauge("hermes_oldest_waiting_seconds", "Age of what has waited longest.", age)
        yield _gauge("hermes_turns_running", "Turns at work.", self._running())
        yield _gauge("hermes_uptime_seconds", "Since the start.", time.time() - self._started)

    def _boxes(self) -> Iterator[Metric]:
        for box, counts in self._db.mail_counts().items():
            family = GaugeMetricFamily(
                f"hermes_{box}", f"Messages in the {box}, by state.", labels=["platform", "state"]
            )
            for labels, count in counts.items():
                family.add_metric(list(labels), count)
            yield family


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)
