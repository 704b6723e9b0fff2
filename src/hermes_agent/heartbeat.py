"""A turn that says from time to time that it still runs, however long a tool takes."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVERY_SECONDS: Final = 20.0


@contextlib.contextmanager
def beating(
    renew: Callable[[], object], lost: Callable[[], object], seconds: float = EVERY_SECONDS
) -> Iterator[None]:
    """Renew the right to run while the body runs; *lost* is called when it cannot be had."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(seconds):
            if attempt(Step("renew the turn", renew)) is not None:
                lost()
                return

    thread = threading.Thread(target=beat, name="hermes-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5)
