"""A real terminal: a program in a tmux window, its input and its screen."""

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

PASSED_VARIABLES = (
    "HERMES_HOME",
    "HERMES_AGENT_AUTOMATIC_TITLES",
    "HERMES_LLM_BUILT_IN",
    "HERMES_STORE_URL",
    "HOME",
    "PATH",
    "COVERAGE_FILE",
    "TZ",
    "PYTHONPATH",
    "HERMES_TEST_CLOCK_OFFSET_SECONDS",
)


class Tmux:
    """One window with a shell in it."""

    def __init__(self, folder: Path, columns: int, lines: int, **environment: str) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._socket = str(folder / f"tmux-{columns}-{lines}-{time.monotonic_ns()}")
        variables = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        assignments = [f"{name}={value}" for name, value in {**variables, **environment}.items()]
        fixed = ["TERM=tmux-256color", "LANG=C.UTF-8", "PS1=$ "]
        shell = shlex.join(["env", "-i", *fixed, *assignments, "bash", "--norc", "--noprofile"])
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                   shell)  # fmt: skip
        self.wait_for("$")

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        process = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *arguments],
            capture_output=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        return process.stdout.decode()

    def run(self, command: list[str], suffix: str = "") -> None:
        """Type a command line into the shell; `END-0-` follows when it ended with code 0."""
        self.type(f"clear; {shlex.join(command)} {suffix}; echo END-$?-\n")

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

    def press_until(self, key: str, is_true: Callable[[str], bool]) -> None:
        """Press a key again and again, until a condition on the screen holds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_true(screen := self.screen()):
            assert time.monotonic() < deadline, f"{key} has no effect; screen:\n{screen}"
            self.press(key)
            time.sleep(0.2)  # each look at the screen starts a program

    def paste(self, text: str) -> None:
        """Paste a text as terminals do, in brackets."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def screen(self, *, styled: bool = False) -> str:
        """The content of the screen."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styled else []))

    def wait_until(self, is_true: Callable[[str], bool], what: str) -> str:
        """Wait until a condition on the screen holds; return the screen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_true(screen := self.screen()):
            assert time.monotonic() < deadline, f"timed out waiting for {what}; screen:\n{screen}"
            time.sleep(0.1)  # each look at the screen starts a program
        return screen

    def wait_for(self, text: str) -> str:
        """Wait until *text* is on the screen."""
        return self.wait_until(lambda screen: text in screen, repr(text))

    def wait_for_end(self, code: int = 0) -> str:
        """Wait until the command has ended; return its output."""
        return self.wait_for(f"END-{code}-").rpartition(f"END-{code}-")[0]
