"""Processes of this machine, found by their command line: a sandbox has its own process ids."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERS = itertools.count(1)


def unique_sleep(seconds: int = 300) -> str:
    """A `sleep` command that no other test runs."""
    return f"sleep {seconds}.{os.getpid()}{next(_NUMBERS):04}"


def is_command_running(command: str) -> bool:
    """Whether a process with exactly this command line is running."""
    return is_running(command.split(" "))


def is_running(command: Sequence[str]) -> bool:
    """Whether a process with exactly these arguments is running."""
    wanted = "".join(f"{word}\0" for word in command).encode()
    return any(command_line(folder.name) == wanted for folder in Path("/proc").glob("[0-9]*"))


def command_line(process: int | str) -> bytes:
    """The arguments of a process, each followed by a null byte; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def child_processes(process: int) -> list[int]:
    """The processes that a process has started and that still run."""
    children: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, file.read_text().split())
    return children
