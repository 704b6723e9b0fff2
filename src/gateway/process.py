"""The gateway as a process: one for a Hermes folder, until it is told to leave."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from enum import Enum
from typing import TYPE_CHECKING, Final

from hermes_cli import log_file
from hermes_state import driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.run import GatewayRunner

ALREADY: Final = 78  # nothing a supervisor could mend by starting it again


def main() -> int:
    """The gateway as a program of its own; the exit code."""
    driver.install()
    log_file.install(log_file.GATEWAY)
    ended = run()
    if ended is Ended.RESTART:
        begin_anew()
    return 0 if ended is Ended.DONE else ALREADY


class Ended(Enum):
    """How it came to an end."""

    DONE = "done"
    RESTART = "restart"
    ANOTHER = "another gateway runs here"


def run(tell: Callable[[str], object] | None = None) -> Ended:
    """Run until SIGTERM, SIGINT or SIGHUP; SIGUSR1 means to begin anew after that."""
    from gateway import status  # noqa: PLC0415 - after our SQLite is in place
    from gateway.run import GatewayRunner  # noqa: PLC0415 - as above

    with status.held() as is_ours:
        if not is_ours:
            return Ended.ANOTHER
        is_restart = asyncio.run(_run(GatewayRunner(), tell))
    return Ended.RESTART if is_restart else Ended.DONE


async def _run(runner: GatewayRunner, tell: Callable[[str], object] | None) -> bool:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, runner.leave)
    loop.add_signal_handler(signal.SIGUSR1, runner.ask_to_restart)
    return await (runner.run(tell) if tell else runner.run())


def begin_anew() -> None:
    """Become a new process with the same number: supervisors and terminals keep it."""
    os.execv(sys.executable, [sys.executable, "-m", "gateway.process"])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
