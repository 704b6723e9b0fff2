"""Health and metrics endpoints: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.process.live_facts import crash_problems, process_problems
from hermes_core.metrics import CONTENT_TYPE, MetricsRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric
    from starlette.requests import Request

    from gateway.process.live_facts import LiveFacts
    from gateway.status import RuntimeFacts
    from hermes_state.store import SessionDB

HEALTH_PROBE_SECONDS: Final = 1.0
STORE_WRITE_SECONDS_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
)  # fmt: skip
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
        self.store_write_seconds = self.registry.histogram(
            "hermes_store_write_seconds",
            "Seconds until a write to the history is on disk.",
            STORE_WRITE_SECONDS_BUCKETS,
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
        facts: LiveFacts,
    ) -> None:
        self._db = db
        self._gateway_metrics = metrics
        self._facts = facts
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
        """Whether the process works: the store is writable, the disk has room, no turn hangs."""
        facts = await self._facts.collect(HEALTH_PROBE_SECONDS)
        found, left = process_problems(facts), crash_problems(facts)
        return JSONResponse(
            {
                "status": "failing" if found else "degraded" if left else "ok",
                "problems": [*found, *left],
                "waiting_chats": facts.get("waiting_chats"),
            },
            status_code=503 if found else 200,
        )

    async def _ready(self, _request: Request) -> Response:
        """Whether everything works and the gateway is not draining."""
        facts = await self._facts.collect()
        is_ready = not self.is_draining and not facts["problems"]
        status = "draining" if self.is_draining else "ready" if is_ready else "degraded"
        return JSONResponse({"status": status, **facts}, status_code=200 if is_ready else 503)

    async def _metrics(self, _request: Request) -> Response:
        await self._facts.collect()
        text = await run_in_threadpool(self._gateway_metrics.registry.render)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    def gauges(self) -> Iterator[Metric]:
        """The current values."""
        connected = GaugeMetricFamily(
            "hermes_platform_connected", "1 while a platform is connected.", labels=["platform"]
        )
        facts = self._facts.current
        for name, state in facts.get("platforms", {}).items():
            connected.add_metric([name], float(state.get("state") == "connected"))
        yield connected
        yield from self._mail_gauges()
        for name, help_text, value in _values(facts):
            yield _gauge(name, help_text, value)
        failures = CounterMetricFamily(
            "hermes_task_failures", "Unexpected ends of a long-lived task.", labels=["task"]
        )
        for task in facts.get("tasks", []):
            failures.add_metric([task["name"]], task["failures"])
        yield failures
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


def _values(facts: RuntimeFacts) -> list[tuple[str, str, float]]:
    """The facts that are numbers: name, meaning, value."""
    turns = facts.get("turns", {})
    return [
        (
            "hermes_oldest_waiting_seconds",
            "Age of the oldest waiting message.",
            facts.get("oldest_waiting_seconds", 0.0),
        ),
        (
            "hermes_oldest_claimed_seconds",
            "Age of the oldest message that is being handled.",
            facts.get("oldest_claimed_seconds", 0.0),
        ),
        ("hermes_turns_running", "Turns that are running.", turns.get("running", 0)),
        (
            "hermes_turn_silence_seconds",
            "The longest time that a running turn is without progress.",
            turns.get("silent_seconds", 0.0),
        ),
        (
            "hermes_failed_messages",
            "Messages and updates that could not be handled.",
            facts.get("failed_messages", 0),
        ),
        (
            "hermes_store_writable",
            "1 while the history can be written.",
            float(not facts.get("store_error")),
        ),
        ("hermes_free_disk_bytes", "Free bytes on the disk.", facts.get("free_bytes", 0)),
    ]


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=value)
