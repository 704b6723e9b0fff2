"""A figure: what was measured, against what baseline of the same run, with what target."""

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
    """One line of the table; lower is better, for all of them."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    limit: float | None = None
    limits: Literal["value", "ratio"] = "value"
    measured_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        """How often the baseline fits into the value."""
        if self.measured_ratio is not None:
            return self.measured_ratio
        return None if not self.baseline else self.value / self.baseline

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.limit is None:
            return None
        measured = self.value if self.limits == "value" else self.ratio
        return measured is not None and measured <= self.limit

    @property
    def target(self) -> str:
        """The target in words."""
        if self.limit is None:
            return ""
        return f"≤ {self.limit:g} {self.unit}" if self.limits == "value" else f"≤ {self.limit:g}x"

    def as_json(self) -> dict[str, Any]:
        """The figure for a results file."""
        found = asdict(self) | {"ratio": self.ratio, "is_met": self.is_met}
        del found["measured_ratio"]
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in found.items()
        }


def seconds(work: Work) -> float:
    """How long *work* takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(rounds: int, *works: Work) -> list[list[float]]:
    """Times of each work in milliseconds, taken in turns so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for own, work in zip(times, works, strict=True):
            own.append(seconds(work) * 1000)
    return times


def percentile(times: Sequence[float], share: float) -> float:
    """The value below which *share* of the times lie."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def median(times: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(times)
