"""Temporary files of a restore in the user's folder: removed also if the process is killed."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from hermes_agent.tools import real_paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LIST_NAME: Final = "restoring"
MAX_NAME_CHARACTERS: Final = 100


class TemporaryNames:
    """The names that one restore uses."""

    def __init__(self, token: str) -> None:
        self._token = token

    def of(self, name: str) -> str:
        """The temporary name for a file."""
        return f".{name[:MAX_NAME_CHARACTERS]}.{self._token}.tmp"


@contextlib.contextmanager
def listed_names(root: Path, paths: Iterable[bytes]) -> Iterator[TemporaryNames]:
    """Names for a restore of some paths, which the store of a folder remembers until the end."""
    token = f"hermes-{os.urandom(4).hex()}"
    names = b"\0".join((token.encode(), *paths))
    write_atomically(root / LIST_NAME, names, is_synced=False)
    yield TemporaryNames(token)
    (root / LIST_NAME).unlink()


def remove_leftovers(root: Path, folder: Path) -> None:
    """Remove what a restore that was killed has left."""
    try:
        token, *paths = (root / LIST_NAME).read_bytes().split(b"\0")
    except FileNotFoundError:
        return
    names = TemporaryNames(os.fsdecode(token))
    for each in paths:
        path = folder / os.fsdecode(each)
        with contextlib.suppress(OSError), real_paths.open_parent(path) as parent:
            os.unlink(names.of(path.name), dir_fd=parent)
    (root / LIST_NAME).unlink()
