"""Keeps commands from creating startup files that did not exist.

A sandbox can make an existing file read-only, but not a missing one in a folder that is
writable, as the home folder is in full mode or after an approval. So what a command created
there is moved aside after it.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.sandbox.git_guard import move_aside, open_folder
from hermes_agent.sandbox.git_state import HOOKS
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Iterable


class StartUpGuard:
    """The protected files that are missing before a command."""

    def __init__(self) -> None:
        self._missing: dict[Path, Path] = {}  # with the first missing folder on the way

    def begin(self, protected: Iterable[Path]) -> None:
        """Record what is missing, besides what was missing before."""
        for path in protected:
            if path.name != HOOKS and not os.path.lexists(path):
                self._missing.setdefault(path, _first_missing(path))

    def restore(self) -> list[str]:
        """Move aside what was created since; its paths."""
        restored: list[str] = []
        for path, first in list(self._missing.items()):
            created = first if first.is_symlink() else path  # a link can be filled later
            if os.path.lexists(created) and str(created) not in restored:
                attempt("move a startup file aside", functools.partial(_move, created))
                restored.append(str(created))
        return restored

    def end(self) -> None:
        """Forget the record: from here on the user may create the files."""
        self._missing = {}


def _first_missing(path: Path) -> Path:
    while not os.path.lexists(path.parent):
        path = path.parent
    return path


def _move(path: Path) -> None:
    with open_folder(Path(os.path.realpath(path.parent))) as parent:
        move_aside(path.name, parent)
