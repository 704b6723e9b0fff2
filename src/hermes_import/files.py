"""Units that are files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_import.json_lines import HEAD_BYTES, HEAD_KEY, head_of
from hermes_import.sources import Unit
from hermes_state.imports.rows import UnitState

if TYPE_CHECKING:
    from collections.abc import Iterator


def existing(paths: list[Path]) -> list[Path]:
    """The paths that exist."""
    return [path for path in paths if path.exists()]


def path_text(path: Path) -> str:
    """A path as text that can be stored: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def file_unit(path: Path, created_at: float = 0.0) -> Unit | None:
    """The unit of a file; None if it does not exist or is not a regular file."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Unit(
        path_text(path),
        path,
        f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}",
        status.st_size,
        status.st_mtime,
        created_at or status.st_mtime,
    )


def walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
    """The files below a folder whose names end with one of the suffixes, in order of names."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from walk(Path(entry.path), suffixes)
        elif entry.name.endswith(suffixes):
            yield entry


def start_of(unit: Unit, before: UnitState | None) -> UnitState:
    """Where to begin with a file: at the earlier position, unless the file was replaced."""
    if before is None or not before.position or before.position > unit.size_bytes:
        return UnitState("")
    with unit.path.open("rb") as file:
        is_same = head_of(file.read(HEAD_BYTES)) == before.state.get(HEAD_KEY)
        file.seek(before.position - 1)
        is_line_start = file.read(1) == b"\n"
    return before if is_same and is_line_start else UnitState("")
