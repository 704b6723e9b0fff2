"""A program in a pseudo-terminal that is always read, and the program's CPU time."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

LINES, COLUMNS = 40, 120
TIMEOUT_SECONDS: Final = 60.0
ESCAPES: Final = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[^\[]")
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Window:
    """`hermes` in a pseudo-terminal; killed at the end."""

    def __init__(self, *arguments: str) -> None:
        self._output = b""
        self._is_open = True
        self._last = time.monotonic()
        command = [sys.executable, "-m", "hermes_cli", *arguments]
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)  # noqa: S606 - the interpreter itself
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._is_open:
            self.end()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._terminal, 65536)
            except OSError:  # on Linux, the other side is closed
                return
            if not chunk:
                return
            self._last = time.monotonic()
            self._output += chunk

    def wait_for(self, text: str) -> None:
        """Wait until the program has written *text*, ignoring escape sequences."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while text.encode() not in ESCAPES.sub(b"", self._output):
            if time.monotonic() > deadline or not self._reader.is_alive():
                raise AssertionError(f"no {text!r} in {ESCAPES.sub(b'', self._output)[-2000:]!r}")
            time.sleep(0.005)

    def wait_for_quiet(self, seconds: float = 0.5, max_seconds: float = 3.0) -> None:
        """Wait until there is no output for *seconds*; a blinking cursor writes forever."""
        deadline = time.monotonic() + max_seconds
        while time.monotonic() - self._last < seconds and time.monotonic() < deadline:
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._terminal, key.encode())

    def cpu_seconds(self) -> float:
        """CPU time of the program so far, to a hundredth of a second."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def end(self) -> float:
        """Kill the program; returns its CPU seconds."""
        self._is_open = False
        os.kill(self.pid, 9)
        _, _, usage = os.wait4(self.pid, 0)
        self._reader.join(timeout=10)
        os.close(self._terminal)
        return usage.ru_utime + usage.ru_stime
