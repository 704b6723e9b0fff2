"""Renews the lease of a turn while it runs."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RENEW_SECONDS: Final = 20.0


@contextlib.contextmanager
def renewing_lease(
    later: Callable[[float, Callable[[], object]], object],
    renew: Callable[[], object],
    on_lost: Callable[[], object],
    seconds: float = RENEW_SECONDS,
) -> Iterator[None]:
    """Renew the turn's lease while the body runs; *on_lost* is called when that fails.

    *later* runs a function after some seconds, in a thread that all turns share.
    """
    is_over = threading.Event()

    def renew_once() -> None:
        if is_over.is_set():
            return
        if not isinstance(attempt("renew the turn", renew), Failure):
            later(seconds, renew_once)
        elif not is_over.is_set():
            on_lost()

    later(seconds, renew_once)
    try:
        yield
    finally:
        is_over.set()
