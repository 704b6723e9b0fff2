"""Python's regular expressions in a process that can be killed.

`re` backtracks: some patterns never end, and a thread that runs one cannot be stopped. This is
the replacement of RE2 on systems without a wheel of it (musl).
"""

from __future__ import annotations

import selectors
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from hermes_agent.tools.arguments import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

MAX_SECONDS: Final = 5.0  # for the text of one file
POLL_SECONDS: Final = 0.05
# Messages are a length and as many bytes. The first answer is empty or the error of the pattern,
# each following one the numbers of the lines that match.
PROGRAM: Final = """
import re, resource, struct, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
source, target = sys.stdin.buffer, sys.stdout.buffer
def read():
    head = source.read(8)
    return source.read(struct.unpack("<Q", head)[0]).decode() if head else None
def write(data):
    target.write(struct.pack("<Q", len(data)) + data)
    target.flush()
try:
    search = re.compile(read()).search
except (re.error, OverflowError, RecursionError, MemoryError) as error:
    write(str(error).encode() or b"too complex")
    sys.exit()
write(b"")
while (text := read()) is not None:
    numbers = [number for number, line in enumerate(text.splitlines(), 1) if search(line)]
    write(struct.pack(f"<{len(numbers)}Q", *numbers))
"""


class BoundedPattern:
    """A pattern that another process matches; the process is killed when it takes too long."""

    def __init__(self, pattern: str, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        error = self._ask(pattern)
        if error:
            self.close()
            raise ToolError(
                f"`pattern` is not a valid regular expression (Python syntax): {error.decode()}."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def matching_lines(self, text: str) -> list[tuple[int, str]]:
        """Numbers and texts of the lines that match; none when the search was stopped."""
        data = self._ask(text)
        lines = text.splitlines()
        numbers = struct.unpack(f"<{len(data) // 8}Q", data)
        return [(number, lines[number - 1]) for number in numbers]

    def _ask(self, text: str) -> bytes:
        source, target = self._process.stdin, self._process.stdout
        data = text.encode()
        deadline = time.monotonic() + MAX_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(target, selectors.EVENT_READ)  # type: ignore[arg-type]
            source.write(struct.pack("<Q", len(data)) + data)  # type: ignore[union-attr]
            while not selector.select(POLL_SECONDS):
                if self._is_over():
                    return b""
                if time.monotonic() > deadline:
                    self.close()
                    raise ToolError("`pattern` takes too long here. Use a simpler one.")
        size = struct.unpack("<Q", self._read(8))[0]
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._process.stdout.read(size - len(data))  # type: ignore[union-attr]
            if not part:
                raise ToolError("`pattern` needs too much memory. Use a simpler one.")
            data += part
        return data
