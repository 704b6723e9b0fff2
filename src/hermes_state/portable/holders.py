"""Which other processes have a file open, by name, where the system tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from hermes_state.engine.file_guard import COMPANIONS

PROC: Final = Path("/proc")


def holders_of(store: Path, proc: Path = PROC) -> list[str]:
    """The processes that have a database open: 'hermes (process 4711)'; never this one."""
    real = os.path.realpath(store)
    wanted = {real + tail for tail in COMPANIONS}
    return sorted(
        f"{_name_of(process)} (process {process.name})"
        for process in proc.glob("[0-9]*")
        if process.name != str(os.getpid()) and wanted & _open_files(process)
    )


def _open_files(process: Path) -> set[str]:
    """What a process has open; nothing for one that is gone or somebody else's."""
    found = set()
    try:
        for handle in (process / "fd").iterdir():
            found.add(os.readlink(handle))  # noqa: PTH115 - a name, not a place to go
    except OSError:
        return found
    return found


def _name_of(process: Path) -> str:
    """The command, shortened; a program run by Python is named by its module or script."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "?"
    named = [Path(word).name for word in words if word and not word.startswith("-")]
    is_python = bool(named) and named[0].startswith("python")
    return " ".join(named[1:4] if is_python and len(named) > 1 else named[:3]) or "?"
