"""The number of workers for a scan, from the cores that are idle at its start."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

MAX_WORKERS: Final = 8
SAMPLE_SECONDS: Final = 0.1  # the kernel counts in hundredths of a second
STATISTICS_FILE: Final = Path("/proc/stat")
IDLE_COLUMNS: Final = slice(3, 5)  # idle, and waiting for a disk
COUNTED_COLUMNS: Final = 8  # the times of guests are included in earlier columns


def count_free_cores() -> int:
    """Number of workers that do not slow down other processes.

    A busy core counts half, since workers run at low priority.
    """
    cores = _usable_cores()
    return max(1, min(MAX_WORKERS, round(len(cores) - _count_busy(cores) / 2)))


def _usable_cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _count_busy(cores: frozenset[int]) -> float:
    """How many of *cores* are busy now; without statistics, the load of the last minute."""
    before = read_core_times(cores)
    if before is None:
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    time.sleep(SAMPLE_SECONDS)
    return busy_share(before, read_core_times(cores) or before) * len(cores)


def read_core_times(cores: frozenset[int], file: Path = STATISTICS_FILE) -> tuple[int, int] | None:
    """The idle and the total time of *cores* since the start; None where it is unknown."""
    try:
        lines = file.read_text("ascii").splitlines()
    except OSError:  # not Linux, or hidden
        return None
    idle = total = 0
    for name, *columns in filter(None, map(str.split, lines)):
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            times = [int(column) for column in columns[:COUNTED_COLUMNS]]
            idle += sum(times[IDLE_COLUMNS])
            total += sum(times)
    return (idle, total) if total else None


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The share of busy time between two readings, from 0 to 1."""
    idle, total = after[0] - before[0], after[1] - before[1]
    return min(1.0, max(0.0, 1 - idle / total)) if total > 0 else 0.0
