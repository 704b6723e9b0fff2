"""Safe lookup of files below a folder by untrusted relative paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def resolve_inside(folder: Path, path: str) -> Path | None:
    """The file at *path* below *folder*, or None if it does not exist or is outside.

    Symbolic links that lead out of the folder count as outside.
    """
    parts = path.split("/")
    if any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    try:
        root = folder.resolve()
        file = root.joinpath(*parts).resolve()
        is_inside = file.is_relative_to(root) and file.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, not encodable, a loop of links
        return None
    return file if is_inside else None
