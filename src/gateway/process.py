"""The gateway as a process: one for a Hermes folder, until it is told to leave."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Final

from hermes_cli import log_file
from hermes_state import driver

if TYPE_CHECKING:
    from gateway.run import GatewayRunner

ALREADY: Final = 78  # nothing a supervisor could mend by starting it again


def main() -> int:
    """The gateway as a program of its own; the exit code."""
    driver.install()
    log_file.install()
    return 0 if run() else ALREADY


def run() -> bool:
    """Run until SIGTERM, SIGINT or SIGHUP; False when another gateway runs here."""
    from gateway import status  # noqa: PLC0415 - after our SQLite is in place
    from gateway.run import GatewayRunner  # noqa: PLC0415 - as above

    with status.held() as is_ours:
        if is_ours:
            asyncio.run(_run(GatewayRunner()))
        return is_ours


async def _run(runner: GatewayRunner) -> None:
    leaving = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, leaving.set)
    await runner.start()
    await leaving.wait()
    await runner.stop()


if __name__ == "__main__":
    sys.exit(main())
