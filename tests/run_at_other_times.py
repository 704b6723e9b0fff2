"""Runs the tests that read the clock at other hours and in other time zones.

    python tests/run_at_other_times.py [pytest's options]

Every process of a run has its wall clock shifted to the nearest moment at which it is 00:05,
12:00 or 23:55 in the zone (see shifted_clock/sitecustomize.py), and TZ set to the zone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES = ("00:05", "12:00", "23:55")
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kathmandu")
# time_machine is a plugin of pytest, too, and is imported before pytest can prepare it.
EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
SHIFTED_CLOCK = Path(__file__).resolve().parent / "shifted_clock"


def main(options: Sequence[str]) -> int:
    """Run every combination; the number of those that failed."""
    failed = 0
    for zone, at in product(ZONES, TIMES):
        began = time.monotonic()
        code = run(zone, at, options)
        verdict = "passed" if code == 0 else f"failed with exit code {code}"
        say(f"=== {at} {zone}: {verdict}, {time.monotonic() - began:.0f} s")
        failed += code != 0
    return failed


def run(zone: str, at: str, options: Sequence[str]) -> int:
    """The exit code of the marked tests at a time in a zone."""
    offset = offset_seconds(datetime.now(UTC), zone, at)
    say(f"=== {at} {zone} (clock shifted by {offset:+.0f} s)")
    environment = {
        **os.environ,
        "TZ": zone,
        "PYTHONPATH": str(SHIFTED_CLOCK),
        "HERMES_TEST_CLOCK_OFFSET_SECONDS": str(offset),
    }
    command = [sys.executable, "-m", "pytest", "-m", "clock", *EARLY, *options]
    return subprocess.run(command, env=environment, check=False).returncode


def offset_seconds(now: datetime, zone: str, at: str) -> float:
    """How far away the nearest moment is at which clocks in *zone* show *at*."""
    here = now.astimezone(ZoneInfo(zone))
    hour, minute = map(int, at.split(":"))
    today = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    # Aware datetimes of one zone subtract by the wall clock; in UTC, by the time that passes.
    nearby = [(today + timedelta(days=days)).astimezone(UTC) - now for days in (-1, 0, 1)]
    return min(nearby, key=abs).total_seconds()


def say(line: str) -> None:
    """Print at once: pytest writes to the same terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
