"""Work that a signal handler must not strike in the middle of.

Handlers run on the main thread, between any two steps of it. Whoever holds a lock there
when one strikes keeps it until the handler returns; a handler that needs the same lock
waits for ever. So such work is done on another thread, and the main thread only waits.
"""

from __future__ import annotations

import _thread
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def run_apart(work: Callable[[], T]) -> T:
    """Run *work* to its end on a thread that is not the main one; its result, or its error."""
    if threading.current_thread() is not threading.main_thread():
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

    _thread.start_new_thread(run, ())
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]
