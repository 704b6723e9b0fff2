"""Signal dispositions that do not depend on how the test run was started.

A shell starts a background job with SIGINT and SIGQUIT ignored, `nohup` ignores SIGHUP, and a
program inherits what is ignored or blocked. A handler is not inherited: exec resets it to the
default. So every signal that was ignored gets a handler here, and every child starts with the
default disposition, while the test run itself stays as immune as it was started.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

# Stop signals and those that a shell or a service manager may leave ignored.
RESET: Final = (
    signal.SIGALRM,
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def restore() -> None:
    """Give children the default dispositions; SIGINT raises KeyboardInterrupt, as always."""
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in RESET:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _stay)


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Do nothing, as the ignored signal did."""
