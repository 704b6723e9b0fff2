"""Hashes of all files of a folder, to show that nothing was changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def file_hashes(folder: Path) -> dict[str, str]:
    """The hash of every file by its path in the folder; folders have none."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in sorted(folder.rglob("*"))
    }
