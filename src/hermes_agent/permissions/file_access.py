"""Files that no tool opens: the Hermes folder and credentials of the user.

Tools that run in this process follow the same policy as commands in the sandbox. A path is
checked by what it leads to: symbolic links are resolved, and a file with several names is
compared with the hidden ones.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.limits import READABLE_HERMES_FOLDERS
from hermes_agent.sandbox.policy import credential_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_COMPARED_FILES: Final = 20_000
MAX_JUDGED_PATHS: Final = 1_000
OTHER_PROCESSES: Final = re.compile(r"/proc/(\d+|self|thread-self)(/|$)")


class ReviewedPaths:
    """The real path that was reviewed for each file call, until the call takes it.

    The path is resolved once: a link that changes between the review and the call has no
    effect. A model may give several calls the same ID.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[tuple[str, Path], Path] = {}

    def note(self, call_id: str, path: Path) -> Path:
        """Resolve the path of a call; the first resolution of the same path counts."""
        with self._lock:
            real = self._paths.get((call_id, path))
            if real is None:
                real = self._paths[call_id, path] = Path(os.path.realpath(path))
            if len(self._paths) > MAX_JUDGED_PATHS:
                self._paths.pop(next(iter(self._paths)))
            return real

    def pop(self, call_id: str, path: Path) -> Path | None:
        """The real path of a call, once; None for a call that was not reviewed."""
        with self._lock:
            return self._paths.pop((call_id, path), None)


class FileAccess:
    """Decides whether a file is hidden from the tools of a conversation."""

    def __init__(self, hermes_home: Path, home: Path) -> None:
        self._hermes_home = Path(os.path.realpath(hermes_home))
        self._home = home

    def is_hidden(self, path: Path, workspace: Path) -> bool:
        """Whether *path* leads to a hidden file or folder."""
        real = Path(os.path.realpath(path))
        if OTHER_PROCESSES.match(str(real)):  # environment, memory, open files
            return True
        if any(real.is_relative_to(folder) for folder in self._revealed(workspace)):
            return False
        if any(real.is_relative_to(hidden) for hidden in self._hidden()):
            return True
        return self._is_linked(real)

    def hidden_below(self, folder: Path) -> list[Path]:
        """The hidden files and folders below a real folder, unless it is below one itself."""
        return [path for path in self._hidden() if path != folder and path.is_relative_to(folder)]

    def is_hidden_identity(self, facts: os.stat_result) -> bool:
        """Whether a file with several names is another name of a hidden one."""
        return (facts.st_dev, facts.st_ino) in self._hidden_identities

    @cached_property
    def _hidden_identities(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._identities())

    def _hidden(self) -> list[Path]:
        credentials = credential_paths(self._home)
        return [self._hermes_home, *(Path(os.path.realpath(path)) for path in credentials)]

    def _revealed(self, workspace: Path) -> list[Path]:
        folders = [self._hermes_home / name for name in READABLE_HERMES_FOLDERS]
        real = Path(os.path.realpath(workspace))
        if any(real.is_relative_to(hidden) for hidden in self._hidden()):
            folders.append(real)  # where the owner started the conversation
        return folders

    def _is_linked(self, path: Path) -> bool:
        """Whether a file is another name of a hidden one."""
        try:
            facts = path.stat()
        except OSError:
            return False
        if facts.st_nlink < 2 or not stat.S_ISREG(facts.st_mode):
            return False
        wanted = (facts.st_dev, facts.st_ino)
        return any(identity == wanted for identity in self._identities())

    def _identities(self) -> Iterator[tuple[int, int]]:
        """Device and inode of the hidden files."""
        left = MAX_COMPARED_FILES
        for hidden in self._hidden():
            for file in [hidden] if hidden.is_file() else hidden.rglob("*"):
                left -= 1
                if left < 0:
                    return
                try:
                    facts = file.lstat()
                except OSError:
                    continue
                yield facts.st_dev, facts.st_ino
