"""Contains what a plugin raises while it is loaded: also what would end the process."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def contain_exits() -> Iterator[None]:
    """Turn a SystemExit or KeyboardInterrupt of a plugin into a PluginError.

    Ctrl+C of the user while the plugin is loaded still interrupts.
    """
    with _interrupts() as interrupts:
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            if interrupts:
                raise
            raise PluginError(_message(error)) from error


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects the interrupts of the user, which are raised as usual."""
    received: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield received  # no signal raises KeyboardInterrupt here
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:  # the plugin may have set its own
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the plugin called sys.exit while loading ({error})"
    return f"the plugin raised {type(error).__name__} while loading"
