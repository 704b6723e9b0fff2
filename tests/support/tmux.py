"""A real terminal: a program in a window of tmux, the keys one types, what one sees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PASSED_ON = (
    "HERMES_HOME",
    "HOME",
    "PATH",
    "HERMES_TESTS_MEASURED",
    "COVERAGE_FILE",
    "TZ",
    "PYTHONPATH",
    "HERMES_TEST_CLOCK_OFFSET_SECONDS",
)


class Tmux:
    """One window with a shell in it."""

    def __init__(self, folder: Path, columns: int, lines: int, **environment: str) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed: nothing can be shown on a real terminal")
        self._socket = str(folder / f"tmux-{columns}-{lines}-{time.monotonic_ns()}")
        result = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        words = [f"{name}={value}" for name, value in {**result, **environment}.items()]
        shell = shlex.join(["env", "-i", "TERM=tmux-256color", "LANG=C.UTF-8", "PS1=$ ", *words,
                            "bash", "--norc", "--noprofile"])  # fmt: skip
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                   shell)  # fmt: skip
        self.wait_for("$")

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *words],
            capture_output=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        return done.stdout.decode()

    def run(self, command: list[str], more: str = "") -> None:
        """Type a command line into the shell; `END-0-` follows when it ended with code 0."""
        self.type(f"clear; {shlex.join(command)} {more}; echo END-$?-\n")

    def type(self, text: str) -> None:
        """Type characters; a line break is the Enter key."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self.press("Enter")
            if line:
                self._tmux("send-keys", "-l", line)

    def press(self, *keys: str) -> None:
        """Press keys by the names tmux has for them."""
        self._tmux("send-keys", *keys)

    def screen(self, *, styled: bool = False) -> str:
        """What one sees."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styled else []))

    def wait_until(self, is_true: Callable[[str], bool], what: str) -> str:
        """Look until something is so; what one sees then."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_true(seen := self.screen()):
            assert time.monotonic() < deadline, f"waited in vain for {what}; seen:\n{seen}"
            time.sleep(0.02)
        return seen

    def wait_for(self, text: str) -> str:
        """Look until *text* is on the screen."""
        return self.wait_until(lambda seen: text in seen, repr(text))

    def wait_for_end(self, code: int = 0) -> str:
        """Look until the command has ended; its output."""
        return self.wait_for(f"END-{code}-").rpartition(f"END-{code}-")[0]
