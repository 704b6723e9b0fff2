"""Processes of this machine, found by their command line: a sandbox has its own process ids."""

from __future__ import annotations

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
    return any(_command_line(folder) == wanted for folder in Path("/proc").glob("[0-9]*"))


def is_group_running(group: int) -> bool:
    """Whether a process of a process group is running; one that has ended holds no files."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            return True
    return False


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
