"""Units that are files, and exports: a file that is given by its path and does not change."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hermes_import.json_lines import HEAD_BYTES, HEAD_KEY, head_of
from hermes_import.sources import Unit, by_creation
from hermes_state.imports.rows import UnitState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def existing(paths: list[Path]) -> list[Path]:
    """The paths that exist."""
    return [path for path in paths if is_there(path)]


def is_there(path: Path) -> bool:
    """Whether a path exists, as far as that can be seen.

    True if a folder on the way to it cannot be searched: reading it reports the reason.
    """
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def is_regular(path: Path) -> bool:
    """Whether a path is a file whose state can be read."""
    return file_unit(path) is not None


def matching(folder: Path, pattern: str, usual: str) -> list[Path]:
    """The files in a folder with names of a pattern; the usual one if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            paths = [folder / entry.name for entry in entries]
    except PermissionError:
        return [folder / usual]
    except OSError:
        return []
    return sorted(path for path in paths if path.match(pattern))


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


def unreadable_unit(path: Path) -> Unit:
    """The unit of a folder or database that cannot be listed; its reading fails."""
    return Unit(path_text(path), path, "", 0, modified_at=math.inf)


class FolderWalk:
    """The files below a folder whose names end with one of the suffixes, in order of names.

    Linked folders are entered, each once. *unreadable* are the folders that cannot be listed.
    """

    def __init__(self, folder: Path, suffixes: tuple[str, ...]) -> None:
        self._folder = folder
        self._suffixes = suffixes
        self._linked: set[Path] = set()
        self.unreadable: list[Path] = []

    def __iter__(self) -> Iterator[Path]:
        return self._files_in(self._folder)

    def _files_in(self, folder: Path) -> Iterator[Path]:
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError:
            self.unreadable.append(folder)
            return
        for entry in entries:
            if self._is_folder(entry):
                yield from self._files_in(Path(entry.path))
            elif entry.name.endswith(self._suffixes):
                yield Path(entry.path)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Whether to enter a folder; a link is entered only if it leads to a new place."""
        try:
            if not entry.is_symlink() or not entry.is_dir():
                return entry.is_dir(follow_symlinks=False)
            target, root = Path(entry.path).resolve(), self._folder.resolve()
        except (OSError, RuntimeError):  # a loop of links
            return False
        is_known = target.is_relative_to(root) or root.is_relative_to(target)
        if is_known or target in self._linked:
            return False
        self._linked.add(target)
        return True


def start_of(unit: Unit, before: UnitState | None) -> UnitState:
    """Where to begin with a file: at the earlier position, unless the file was replaced."""
    if before is None or not before.position or before.position > unit.size_bytes:
        return UnitState("")
    with unit.path.open("rb") as file:
        is_same = head_of(file.read(HEAD_BYTES)) == before.state.get(HEAD_KEY)
        file.seek(before.position - 1)
        is_line_start = file.read(1) == b"\n"
    return before if is_same and is_line_start else UnitState("")


class ExportFiles:
    """Exports of one program or service."""

    name: ClassVar[str]
    label: ClassVar[str]

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        """None: an export is given by its path."""
        del home, environ
        return []

    def units(self, root: Path) -> Iterator[Unit]:
        """The export as a whole."""
        unit = file_unit(root)
        if unit is not None:
            yield unit

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        """The export as a whole."""
        del paths
        return self.units(root)

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """The exports by age."""
        return by_creation(units)

    def watched(self, root: Path) -> list[Path]:
        """None: an export does not change."""
        del root
        return []

    def polled(self, root: Path) -> list[Path]:
        """None."""
        del root
        return []

    def close(self) -> None:
        """Nothing is left open."""
