"""A process of our own that outlives the terminal it was started from."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes_core import paths

if TYPE_CHECKING:
    from pathlib import Path


def start(log: Path, module: str, *arguments: str) -> int:
    """Run a module in a session of its own; what it prints goes to *log*. Its process id.

    It is a child of this process, to be waited for as long as this one lives.
    """
    paths.private_folder(log.parent)
    command = [sys.executable, "-P", "-m", module, *arguments]
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        command[0],
        command,
        paths.environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), write, paths.FILE_MODE),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
