"""Figures of benchmarks: measured value, baseline of the same run, target."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Work = Callable[[], object]


@dataclass(frozen=True)
class Figure:
    """A line of the table; lower is better for all figures."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    limit: float | None = None
    limits: Literal["value", "ratio"] = "value"
    measured_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        """The value divided by the baseline."""
        if self.measured_ratio is not None:
            return self.measured_ratio
        return None if not self.baseline else self.value / self.baseline

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.limit is None:
            return None
        measured = self.value if self.limits == "value" else self.ratio
        return measured is not None and measured <= self.limit

    @property
    def target(self) -> str:
        """The target as text."""
        if self.limit is None:
            return ""
        return f"≤ {self.limit:g} {self.unit}" if self.limits == "value" else f"≤ {self.limit:g}x"

    def as_json(self) -> dict[str, Any]:
        """The figure as an entry of a results file."""
        fields = asdict(self) | {"ratio": self.ratio, "is_met": self.is_met}
        del fields["measured_ratio"]
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in fields.items()
        }


def seconds(work: Work) -> float:
    """Time that *work* takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleave(rounds: int, *works: Work) -> list[list[float]]:
    """Times of each work in milliseconds, interleaved so that noise affects all equally."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work_times, work in zip(times, works, strict=True):
            work_times.append(seconds(work) * 1000)
    return times


def percentile(times: Sequence[float], share: float) -> float:
    """The value below which *share* of the times are."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def median(times: Sequence[float]) -> float:
    """The median."""
    return statistics.median(times)
