"""The private temporary folders of sandboxes: one per conversation, below HERMES_HOME."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from hermes_core.paths import hermes_home

FOLDER = "sandbox"
ABANDONED_SECONDS = 86_400  # process ids of another machine or container say nothing here


def private_folder() -> Path:
    """Create a folder for this process; those that killed processes left are removed in time."""
    parent = hermes_home() / FOLDER
    parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    _remove_abandoned(parent)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.iterdir():
        number = folder.name.partition("-")[0]
        if number.isdecimal() and not _is_running(int(number)) and _is_old(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_old(folder: Path) -> bool:
    try:
        return folder.stat().st_mtime < time.time() - ABANDONED_SECONDS
    except OSError:
        return False  # removed by another process


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
