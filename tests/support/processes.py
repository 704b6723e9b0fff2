"""Processes of this machine, found by their command line: a sandbox has its own process ids."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

_NUMBERS = itertools.count(1)


def unique_sleep(seconds: int = 300) -> str:
    """A `sleep` command that no other test runs."""
    return f"sleep {seconds}.{os.getpid()}{next(_NUMBERS):04}"


def is_command_running(command: str) -> bool:
    """Whether a process with exactly this command line is running."""
    wanted = command.replace(" ", "\0").encode() + b"\0"
    return any(_command_line(folder) == wanted for folder in Path("/proc").glob("[0-9]*"))


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
