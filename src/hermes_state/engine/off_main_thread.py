"""Work that a signal handler must not strike in the middle of.

Handlers run on the main thread, between any two steps of it. A lock held there when one
strikes stays held until the handler returns; if the handler waits for anything that needs
the lock, both wait for ever. So the main thread takes no lock of ours: such work is done
on another thread, and the main thread only waits for its end.
"""

from __future__ import annotations

import _thread
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def is_main_thread() -> bool:
    """Whether a signal handler could strike right here."""
    return _thread.get_ident() == threading.main_thread().ident


def start_thread(run: Callable[[], None]) -> None:
    """Start a thread; unlike `threading.Thread.start`, this takes no lock."""

    def seen() -> None:
        sys.settrace(threading.gettrace())  # as debuggers and coverage expect of a thread
        run()

    _thread.start_new_thread(seen, ())


def run_apart(work: Callable[[], T]) -> T:
    """Run *work* to its end on a thread that is not the main one; its result, or its error."""
    if not is_main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            errors.append(error)
        finally:
            done.release()

    start_thread(run)
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]
