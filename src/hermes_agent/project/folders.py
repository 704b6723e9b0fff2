"""The folders of a project: from the root of its repository down to the working folder."""

from __future__ import annotations

import os
from pathlib import Path


def repository_root(cwd: Path) -> Path:
    """The nearest folder with a `.git`, from *cwd* up; *cwd* itself if there is none."""
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return start


def folders_to(cwd: Path) -> list[Path]:
    """The folders from the root of the repository down to *cwd*, both included."""
    start, root = Path(os.path.realpath(cwd)), repository_root(cwd)
    above = [folder for folder in start.parents if folder.is_relative_to(root)]
    return [*reversed(above), start]
