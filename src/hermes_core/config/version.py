"""The version of the configuration: it changes with every change of its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_core import paths

if TYPE_CHECKING:
    from pathlib import Path

FileVersion = tuple[int, int, int]
MISSING: FileVersion = (0, 0, 0)


def file_version(path: Path) -> FileVersion:
    """The time, size and inode of a file; zeros if it does not exist or cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every request
    except OSError:
        return MISSING
    return status.st_mtime_ns, status.st_size, status.st_ino


def config_version() -> tuple[FileVersion, FileVersion]:
    """The versions of config.yaml and .env."""
    return file_version(paths.config_path()), file_version(paths.env_path())
