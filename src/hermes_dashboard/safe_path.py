"""Files of a folder, by paths that strangers write: nothing outside is ever reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def inside(folder: Path, path: str) -> Path | None:
    """The file at *path* below *folder*; None where there is none, or it lies elsewhere.

    A link that leads out of the folder leads nowhere.
    """
    parts = path.split("/")
    if any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    try:
        root = folder.resolve()
        found = root.joinpath(*parts).resolve()
        is_inside = found.is_relative_to(root) and found.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, no text, links in a circle
        return None
    return found if is_inside else None
