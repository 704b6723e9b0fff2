"""How the work of a function grows with its input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3
UNMEASURABLE_SECONDS = 0.01


def growth(work: Callable[[int], object], size: int) -> float:
    """How much more CPU time a unit of input costs at *size* than at a quarter of it.

    1 where the work is proportional to the input, 4 where it is quadratic; 0 where it takes too
    little time to tell. CPU time, because other processes run at the same time.
    """
    full_seconds = _least_cpu_seconds(work, size)
    if full_seconds < UNMEASURABLE_SECONDS:
        return 0.0
    return full_seconds / _least_cpu_seconds(work, size // 4) / 4


def _least_cpu_seconds(work: Callable[[int], object], size: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work(size)
        best = min(best, time.process_time() - began)
    return best
