"""The server on standard input and output: `python -m tui_gateway.entry`.

Standard output is for frames alone. Signals, the end of input and an orderly request all
end in the same way: every conversation is finalised, then the process leaves.
"""

from __future__ import annotations

import atexit
import functools
import os
import selectors
import signal
import sys
from typing import TYPE_CHECKING, Final

from hermes_core import log_file
from hermes_state.engine import driver
from tui_gateway.frames import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.hub import Hub

PIECE: Final = 65536


def main() -> int:
    """Serve until somebody says otherwise."""
    driver.install()
    log_file.install()
    from tui_gateway import server  # noqa: PLC0415 - after our SQLite is in place
    from tui_gateway.dispatcher import Dispatcher  # noqa: PLC0415 - as above
    from tui_gateway.hub import Hub  # noqa: PLC0415 - as above

    frames_out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print disturbs nobody
    with server._get_db() as db:  # noqa: SLF001 - the seam
        hub = Hub(db)
        dispatcher = Dispatcher(hub, lambda data: _write_all(frames_out, data))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client's Ctrl-C is its own affair
        wake = wake_on_signals(hub, signal.SIGTERM, signal.SIGHUP)
        close = functools.partial(hub.close_all, "tui_shutdown")
        atexit.register(close)  # a second net; what is closed is not closed again
        try:
            dispatcher.greet()
            _serve(dispatcher, wake)
        finally:
            close()
    return 0


def wake_on_signals(hub: Hub, *numbers: int) -> int:
    """Signals only ask for the end; the loop is woken to see it."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: hub.leave())
    return ours


def _serve(dispatcher: Dispatcher, wake: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        waiting = bytearray()
        while not _is_over(dispatcher):
            for key, _ in selector.select(timeout=1.0):
                data = os.read(key.fd, PIECE)
                if key.fd != sys.stdin.fileno():
                    continue
                if not data:
                    return  # the client is gone
                waiting += data
                _take_lines(dispatcher, waiting)


def _is_over(dispatcher: Dispatcher) -> bool:
    return dispatcher.hub.is_leaving or dispatcher.is_gone


def _take_lines(dispatcher: Dispatcher, waiting: bytearray) -> None:
    while (end := waiting.find(b"\n")) >= 0:
        line = bytes(waiting[:end])
        del waiting[: end + 1]
        dispatcher.take(line)
        if _is_over(dispatcher):
            return
    if len(waiting) > MAX_FRAME_BYTES:
        dispatcher.take(bytes(waiting))  # answered with an error
        waiting.clear()


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


if __name__ == "__main__":
    sys.exit(main())
