"""The gateway as a process: one for a Hermes folder, until it is told to leave."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from enum import Enum
from typing import TYPE_CHECKING, Final

from hermes_core import log_file
from hermes_core.errors import ConfigError, HermesError
from hermes_core.signals import stop_signals
from hermes_state.engine import driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.run import GatewayRunner

log = logging.getLogger(__name__)

ALREADY: Final = 78  # nothing a supervisor could mend by starting it again


def main() -> int:
    """The gateway as a program of its own; the exit code."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until it can be listened to
    driver.install()
    log_file.install(log_file.GATEWAY)
    try:
        ended = run()
    except HermesError as error:
        return _refused(error)
    if ended is ProcessEnd.RESTART:
        begin_anew()
    return 0 if ended is ProcessEnd.DONE else ALREADY


class ProcessEnd(Enum):
    """How it came to an end."""

    DONE = "done"
    RESTART = "restart"
    ANOTHER = "another gateway runs here"


def run(tell: Callable[[str], object] | None = None) -> ProcessEnd:
    """Run until a stop signal; SIGUSR1 means to begin anew after that."""
    from gateway import status  # noqa: PLC0415 - after our SQLite is in place
    from gateway.run import GatewayRunner  # noqa: PLC0415 - as above

    with status.held() as is_ours:
        if not is_ours:
            return ProcessEnd.ANOTHER
        runner = GatewayRunner()
        is_restart = asyncio.run(_run(runner, tell))
        if runner.is_stuck and not is_restart:  # a tool that does not end keeps us no longer
            status.remove_pid_file()
            logging.shutdown()
            os._exit(0)
    return ProcessEnd.RESTART if is_restart else ProcessEnd.DONE


async def _run(runner: GatewayRunner, tell: Callable[[str], object] | None) -> bool:
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, runner.leave)
    loop.add_signal_handler(signal.SIGUSR1, runner.ask_to_restart)
    return await (runner.run(tell) if tell else runner.run())


def begin_anew() -> None:
    """Become a new process with the same number: supervisors and terminals keep it."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "gateway.process.main"])  # noqa: S606


def _refused(error: HermesError) -> int:
    """Say why it does not start; 78 where only the user can mend it."""
    from gateway import status  # noqa: PLC0415 - as above

    log.error("the gateway does not start: %s", error)
    sys.stderr.write(f"hermes: {error}\n")
    status.write_runtime_status("startup_failed", exit_reason=str(error))
    return ALREADY if isinstance(error, ConfigError) else 1


if __name__ == "__main__":
    sys.exit(main())
