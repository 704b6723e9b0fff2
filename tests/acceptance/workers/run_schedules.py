"""A gateway whose scheduled jobs follow the clock of the test, which is a file.

    run_schedules.py REPORT CLOCK

Sent messages are reported, and that it is up; SIGTERM stops it.
"""

from __future__ import annotations

import asyncio
import signal
import struct
import sys
import time
from pathlib import Path

from reporting import Report

from gateway.config import GatewayConfig
from gateway.platforms.base import Abilities, SendResult
from gateway.process.service import GatewayService
from gateway.schedules import scheduler
from gateway.session import SessionStore
from hermes_core.paths import hermes_home
from hermes_state import SessionDB

TICK_SECONDS = 0.02  # instead of a second: the clock of the test runs faster, too
DRAIN_SECONDS = 30.0


class FileClock:
    """A wall clock whose time the test writes to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> float:
        return float(struct.unpack("d", self._path.read_bytes())[0])

    def monotonic(self) -> float:
        return time.monotonic()


class ReportingPlatform:
    """A platform that reports what is sent."""

    abilities = Abilities()
    account = "test"

    def __init__(self, report: Report) -> None:
        self._report = report

    async def connect(self, receive: object) -> None:
        del receive

    async def disconnect(self) -> None:
        return

    async def send(self, outgoing: object) -> SendResult:
        key, text = outgoing.key, outgoing.text  # type: ignore[attr-defined]
        self._report.write("sent", key=key, text=text)
        return SendResult(True, key)


async def run(report: Report, clock: FileClock) -> None:
    scheduler.TICK_SECONDS = TICK_SECONDS  # type: ignore[misc]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = GatewayConfig()
    with SessionDB() as db:
        routes = SessionStore(hermes_home() / "sessions", config)
        routes._db = db
        service = GatewayService(db, routes, config, hermes_home(), clock=clock)
        await service.start({"local": ReportingPlatform(report)})
        report.write("up")
        await stop.wait()
        await service.stop(DRAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(run(Report(), FileClock(Path(sys.argv[2]))))
