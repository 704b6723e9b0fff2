"""Files opened by a path in which no symbolic link is followed.

A tool call is checked by the real path of its file. A command in the background could put a
symbolic link into that path before the file is opened, so every folder on the way is opened
without following links.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_parent(path: Path, *, creates: bool = False) -> Iterator[int]:
    """The folder of a real path as a descriptor; *creates* makes missing folders."""
    folder = os.open(path.anchor, FOLDER_FLAGS)
    try:
        for name in path.parts[1:-1]:
            if creates:
                _make_folder(name, folder)
            inner = os.open(name, FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return


def open_file(path: Path) -> int:
    """Open a real path for reading; a pipe does not block."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.parent == path:
        return os.open(path, flags)
    with open_parent(path) as folder:
        return os.open(path.name, flags, dir_fd=folder)
