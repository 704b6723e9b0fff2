"""A Prometheus registry of one process, and its text form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsRegistry:
    """Metrics that do not share the library's global registry."""

    def __init__(self) -> None:
        self.collectors = CollectorRegistry()

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Add a counter."""
        return Counter(name, text, labels, registry=self.collectors)

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Add a gauge."""
        return Gauge(name, text, labels, registry=self.collectors)

    def histogram(
        self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        """Add a histogram with the given bucket limits."""
        return Histogram(name, text, labels, buckets=buckets, registry=self.collectors)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.collectors)
