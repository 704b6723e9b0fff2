"""The server on standard input and output: `python -m tui_gateway.entry`.

Standard output carries only frames. A signal, the end of input and a shutdown request all
finalize every conversation before the process exits.
"""

from __future__ import annotations

import atexit
import functools
import os
import selectors
import signal
import sys
from typing import TYPE_CHECKING, Final

from hermes_compat.plugins.choice import choose_interface
from hermes_core import log_file
from hermes_state.engine.sqlite import driver
from tui_gateway.frames import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.hub import Hub

READ_BYTES: Final = 65536


def main() -> int:
    """Serve until a signal, the end of input or a shutdown request."""
    driver.install()
    log_file.install()
    choose_interface()
    from hermes_conversation.purge_hook import keep_facts  # noqa: PLC0415 - after our SQLite
    from hermes_state.store import SessionDB  # noqa: PLC0415 - as above
    from tui_gateway.dispatcher import Dispatcher  # noqa: PLC0415 - as above
    from tui_gateway.hub import Hub  # noqa: PLC0415 - as above

    frames_out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not corrupt the frames
    with SessionDB(purge_hook=keep_facts) as db:
        hub = Hub(db)
        dispatcher = Dispatcher(hub, lambda data: _write_all(frames_out, data))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the client
        wake = wake_on_signals(hub, signal.SIGTERM, signal.SIGHUP)
        close = functools.partial(hub.close_all, "tui_shutdown")
        atexit.register(close)  # in case the loop is not reached; closing is idempotent
        try:
            dispatcher.greet()
            _serve(dispatcher, wake)
        finally:
            close()
    return 0


def wake_on_signals(hub: Hub, *numbers: int) -> int:
    """Make signals request the shutdown and wake the loop; returns the file to select on."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: hub.leave())
    return read_end


def _serve(dispatcher: Dispatcher, wake: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        buffer = bytearray()
        while not _is_over(dispatcher):
            for key, _ in selector.select(timeout=1.0):
                data = os.read(key.fd, READ_BYTES)
                if key.fd != sys.stdin.fileno():
                    continue
                if not data:
                    return  # the client is disconnected
                buffer += data
                _handle_lines(dispatcher, buffer)


def _is_over(dispatcher: Dispatcher) -> bool:
    return dispatcher.hub.is_leaving or dispatcher.is_gone


def _handle_lines(dispatcher: Dispatcher, buffer: bytearray) -> None:
    while (end := buffer.find(b"\n")) >= 0:
        line = bytes(buffer[:end])
        del buffer[: end + 1]
        dispatcher.handle_line(line)
        if _is_over(dispatcher):
            return
    if len(buffer) > MAX_FRAME_BYTES:
        dispatcher.handle_line(bytes(buffer))  # answered with an error
        buffer.clear()


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


if __name__ == "__main__":
    sys.exit(main())
