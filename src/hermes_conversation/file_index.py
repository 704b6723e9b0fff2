"""The files of a working folder, for completing mentions.

`git` lists the files where the folder is in a repository, which leaves out ignored ones; ripgrep
or a walk lists them elsewhere. The list has limits in time and number, and is read again when it
is older than a few seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES: Final = 200_000
MAX_LIST_SECONDS: Final = 5.0
MAX_SEARCH_SECONDS: Final = 1.0
FRESH_SECONDS: Final = 10.0
PATHS_PER_SLICE: Final = 2_000  # paths between two pauses, in which other threads run
SKIPPED_FOLDERS: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


class RankedPath(NamedTuple):
    """A path and how well it matches: the least is the best."""

    rank: tuple[int, int, int]
    path: str


class FileIndex:
    """The files below a folder; searches may run in any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: list[str] = []
        self._read_at = float("-inf")
        self._lock = threading.Lock()

    def search(self, word: str, limit: int = 50) -> list[str]:
        """The paths that contain the letters of *word* in order, the best first.

        Folders end with a slash. A path to elsewhere (`../`, `/`, `~`) lists that folder.
        """
        if word.startswith(("/", "~", "../", "./")):
            return _entries(self.folder, word)[:limit]
        found: list[RankedPath] = []
        pattern = _pattern(word)
        deadline = time.monotonic() + MAX_SEARCH_SECONDS
        paths = self._fresh_paths()
        for start in range(0, len(paths), PATHS_PER_SLICE):
            matching = filter(pattern.search, paths[start : start + PATHS_PER_SLICE])
            found += [RankedPath(_rank(word, path), path) for path in matching]
            if time.monotonic() > deadline:
                break
            time.sleep(0)
        return [ranked.path for ranked in sorted(found)[:limit]]

    def _fresh_paths(self) -> list[str]:
        with self._lock:
            if time.monotonic() - self._read_at > FRESH_SECONDS:
                self._paths = _list_paths(self.folder)
                self._read_at = time.monotonic()
            return self._paths


def _pattern(word: str) -> re.Pattern[str]:
    letters = "[^\n]*?".join(map(re.escape, word))
    flags = re.NOFLAG if any(letter.isupper() for letter in word) else re.IGNORECASE
    return re.compile(letters, flags)


def _rank(word: str, path: str) -> tuple[int, int, int]:
    """Matches in the name before others, whole ones before scattered ones, then short paths."""
    lowered, typed = path.lower(), word.lower()
    name = lowered.rstrip("/").rpartition("/")[2]
    if not typed:
        return (path.count("/"), 0, len(path))
    if name.startswith(typed):
        return (0, len(name), len(path))
    if typed in name:
        return (1, len(name), len(path))
    if typed in lowered:
        return (2, len(name), len(path))
    return (3 if _pattern(typed).search(name) else 4, len(name), len(path))


def _list_paths(folder: Path) -> list[str]:
    """The files and their folders, relative to *folder*."""
    files = _listed_by_git(folder)
    if files is None:
        files = _listed_by_ripgrep(folder)
    if files is None:
        files = list(_walk(folder))
    folders: dict[str, None] = {}
    for path in files:
        parent = path.rpartition("/")[0]
        while parent and f"{parent}/" not in folders:
            folders[f"{parent}/"] = None
            parent = parent.rpartition("/")[0]
    return [*folders, *files]


def _listed_by_git(folder: Path) -> list[str] | None:
    git = system_program("git")
    # The monitor of a repository is a program that its settings name.
    options = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    return _listed([git, *options, *listing], folder) if git else None


def _listed_by_ripgrep(folder: Path) -> list[str] | None:
    program = system_program("rg")
    options = ["--files", "--null", "--no-config", "--no-messages", "--no-require-git"]
    return _listed([program, *options], folder) if program else None


def _listed(command: list[str], folder: Path) -> list[str] | None:
    """The paths that a program lists; None if it fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAX_LIST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode not in {0, 1} or (done.returncode and done.stderr):
        return None
    names = done.stdout.decode(errors="replace").split("\0")
    return [name for name in names if name and "\n" not in name][:MAX_FILES]


def _walk(folder: Path) -> Iterator[str]:
    deadline, count = time.monotonic() + MAX_LIST_SECONDS, 0
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in sorted(folders) if name not in SKIPPED_FOLDERS]
        base = os.path.relpath(root, folder)
        for name in names:
            count += 1
            if count > MAX_FILES or time.monotonic() > deadline:
                return
            yield name if base == "." else f"{base}/{name}"


def _entries(folder: Path, word: str) -> list[str]:
    """The entries of the folder that a path names, with the path as it was typed."""
    typed, _, start = word.rpartition("/")
    parent = folder / os.path.expanduser(f"{typed}/")  # noqa: PTH111 - text, not a path
    try:
        with os.scandir(parent) as listing:
            entries = sorted(
                (entry.name, entry.is_dir())
                for entry in listing
                if entry.name.lower().startswith(start.lower())
                and (start or not entry.name.startswith("."))
            )
    except (OSError, ValueError):
        return []
    return [f"{typed}/{name}{'/' if is_folder else ''}" for name, is_folder in entries]
