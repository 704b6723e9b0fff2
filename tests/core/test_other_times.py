"""The clock that `make clock` shifts: the chosen time, and what is not changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from run_at_other_times import SHIFTED_CLOCK, TIMES, ZONES, offset_seconds
from support.signals import RESET

CLOCKS = """
import datetime, time
print(time.time(), datetime.datetime.now(datetime.UTC).timestamp(), time.monotonic())
"""
IGNORED = """
import signal
print([int(s) for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN])
"""


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", TIMES)
@pytest.mark.parametrize("hour", [0, 5, 12, 23])
def test_the_nearest_matching_time_is_chosen(zone: str, at: str, hour: int) -> None:
    now = datetime(2026, 3, 8, hour, 30, tzinfo=UTC)  # Los Angeles changes its clocks
    offset = timedelta(seconds=offset_seconds(now, zone, at))
    assert (now + offset).astimezone(ZoneInfo(zone)).strftime("%H:%M") == at
    assert abs(offset) <= timedelta(hours=13)


def test_a_program_gets_the_shifted_time_and_the_real_monotonic_clock() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(SHIFTED_CLOCK),
        "HERMES_TEST_CLOCK_OFFSET_SECONDS": "86400",
    }
    wall_before, before = time.time(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", CLOCKS], env=environment, capture_output=True, check=True, text=True
    )
    wall, aware, monotonic = map(float, done.stdout.split())
    own = float(os.environ.get("HERMES_TEST_CLOCK_OFFSET_SECONDS", "0"))
    real = wall_before - own
    tolerance = 0.1  # two processes agree on the time, but not to the microsecond
    assert real + 86400 - tolerance <= wall <= aware <= time.time() - own + 86400 + tolerance
    assert before <= monotonic <= time.monotonic()


def test_a_program_starts_with_default_signal_dispositions() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IGNORED], capture_output=True, check=True, text=True
    )
    assert not set(RESET) & set(json.loads(done.stdout))
