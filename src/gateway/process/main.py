"""The gateway process: one per Hermes folder, until a stop signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from enum import Enum
from typing import TYPE_CHECKING, Final

from hermes_compat.plugins.choice import choose_interface
from hermes_core import log_file
from hermes_core.backoff import Backoff
from hermes_core.distribution import find_distribution
from hermes_core.errors import ConfigError, HermesError, StoreUnavailableError
from hermes_core.paths import state_db_path
from hermes_core.signals import stop_signals
from hermes_state.engine.sqlite import driver
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.process.runner import Gateway

log = logging.getLogger(__name__)

RESTART_VARIABLE: Final = "HERMES_GATEWAY_RESTARTED"  # set in the process that replaces another
STORE_BACKOFF: Final = Backoff(1.0, 10.0)
NEW_OBJECTS_PER_COLLECTION: Final = 10_000  # Python's default: 700
CONFIG_EXIT_CODE: Final = 78  # EX_CONFIG: restarting does not help


def main() -> int:
    """Run the gateway; the exit code."""
    driver.install()
    log_file.install(log_file.GATEWAY_LOG_NAME)
    choose_interface()
    try:
        ended = run()
    except HermesError as error:
        sys.stderr.write(f"hermes: {error}\n")
        return CONFIG_EXIT_CODE if isinstance(error, ConfigError) else 1
    if ended is ProcessEnd.RESTART:
        restart()
    return 0 if ended is ProcessEnd.DONE else CONFIG_EXIT_CODE


class ProcessEnd(Enum):
    """Why the process ends."""

    DONE = "done"
    RESTART = "restart"
    ALREADY_RUNNING = "another gateway is running"


def run(report: Callable[[str], object] | None = None) -> ProcessEnd:
    """Run until a stop signal; SIGUSR1 requests a restart. *report* gets a line per platform."""
    from gateway import status  # noqa: PLC0415 - after driver.install()
    from gateway.process.runner import Gateway  # noqa: PLC0415 - as above

    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until the handler is installed
    is_restarted = bool(os.environ.pop(RESTART_VARIABLE, ""))
    if is_restarted:
        _wait_for_store()
    with status.hold_lock() as is_ours:
        if not is_ours:
            return ProcessEnd.ALREADY_RUNNING
        try:
            runner = Gateway()
            _collect_garbage_rarely()
            is_restart = asyncio.run(_run(runner, report))
        except HermesError as error:
            if is_restarted and isinstance(error, StoreUnavailableError):
                log.warning("history was lost during the restart: %s", error)
                time.sleep(STORE_BACKOFF.delay(1))
                return ProcessEnd.RESTART
            log.error("gateway failed to start: %s", error)
            status.write_runtime_status("startup_failed", exit_reason=str(error))
            raise
        if runner.is_stuck and not is_restart:  # do not wait for a tool that does not end
            status.remove_pid_file()
            logging.shutdown()
            os._exit(0)
    return ProcessEnd.RESTART if is_restart else ProcessEnd.DONE


def _collect_garbage_rarely() -> None:
    """Exclude what is loaded now from garbage collections, and collect new objects less often.

    Collections took 4 to 6 % of the CPU time of a chat message.
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_PER_COLLECTION)


async def _run(runner: Gateway, report: Callable[[str], object] | None) -> bool:
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, runner.request_stop)
    loop.add_signal_handler(signal.SIGUSR1, runner.request_restart)
    return await (runner.run(report) if report else runner.run())


def restart() -> None:
    """Replace this process with a new one that keeps the PID, as supervisors expect."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.environ[RESTART_VARIABLE] = "1"
    launcher = str(find_distribution().launcher)  # it installs what an update needs
    os.execv(launcher, [launcher, "gateway", "run"])  # noqa: S606


def _wait_for_store() -> None:
    """Wait for the server of the history: its loss may be the reason of the restart."""
    from gateway import status  # noqa: PLC0415 - after driver.install()
    from hermes_state.store import SessionDB  # noqa: PLC0415 - as above

    attempts = 0
    while store_url(state_db_path()):
        try:
            SessionDB(is_recovering=False).close()
        except StoreUnavailableError as error:
            attempts += 1
            if attempts == 1:
                log.warning("gateway waits for the history: %s", error)
            status.write_runtime_status("starting", exit_reason=str(error))
            time.sleep(STORE_BACKOFF.delay(attempts))
        else:
            if attempts:
                log.info("history is reachable again")
            return


if __name__ == "__main__":
    sys.exit(main())
