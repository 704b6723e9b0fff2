"""Keeps commands from planting code in existing git repositories.

Git runs the hooks of a repository and the programs named in its configuration when the user
works there later. A sandbox cannot protect single keys of a file that git must be able to
write, nor a hooks folder that does not exist yet. So both are recorded before a command and
restored after it; what was there instead is kept beside it.

Restoring runs outside of the sandbox: it follows no symbolic link, or a command could make it
write anywhere.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.sandbox.git_state import (
    COMMON_FILE,
    CONFIG_FILES,
    HOOKS,
    LINK_MARK,
    UNREADABLE_MARK,
    Repositories,
    RepositoryState,
    common_directory,
    effective_state,
    find_repositories,
    git_directory,
    read_file,
    read_state,
)
from hermes_agent.tools import real_paths
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEARCH_SECONDS: Final = 10.0  # how long a search for repositories is used
REVERTED_SUFFIX: Final = ".reverted"


class FolderState(NamedTuple):
    """A git directory, which may be moved, and what is in it."""

    identity: tuple[int, int]  # device and inode
    state: RepositoryState


class EntryState(NamedTuple):
    """An entry `.git`, the git directories that it leads to, and what git runs there."""

    content: bytes | None  # of a file; None for a folder
    link: str  # the target of a symbolic link
    folders: tuple[Path, ...]
    state: RepositoryState | None

    def leads_to_the_same(self, other: EntryState) -> bool:
        """Whether both lead to the same git directories in the same way."""
        return self[:3] == other[:3]


class GitGuard:
    """The state of the repositories of a conversation before its commands."""

    def __init__(self) -> None:
        self._folders: dict[Path, FolderState] = {}
        self._entries: dict[Path, EntryState] = {}
        self._last: dict[Path, FolderState] = {}  # of every repository that was ever recorded
        self._search: tuple[Path | None, float, Repositories] = (None, 0.0, Repositories([], []))

    def begin(self, workspace: Path, *, keeps: bool) -> None:
        """Record the repositories; *keeps* the earlier record of those with a running command."""
        found = self._repositories(workspace)
        folders = {}
        for folder in found.folders:  # a removed one may be restored with other hooks
            state = _folder_state(folder) or self._last.get(folder)
            if state is not None:
                folders[folder] = state
        entries = {entry: _entry_state(entry) for entry in found.entries if os.path.lexists(entry)}
        self._folders = {**folders, **self._folders} if keeps else folders
        self._entries = {**entries, **self._entries} if keeps else entries
        self._last |= self._folders

    def _repositories(self, workspace: Path) -> Repositories:
        """The repositories; a search takes milliseconds, so it is used for a while.

        Those that were found once stay, however many folders a command makes to hide them.
        """
        searched, at, known = self._search
        if searched == workspace and time.monotonic() - at <= SEARCH_SECONDS:
            return known
        found = find_repositories(workspace)
        if searched == workspace:
            found = Repositories(
                list(dict.fromkeys([*known.folders, *found.folders])),
                list(dict.fromkeys([*known.entries, *found.entries])),
            )
        self._search = (workspace, time.monotonic(), found)
        return found

    def restore(self) -> list[str]:
        """Undo what commands changed since `begin`; the files that were restored."""
        restored: list[str] = []

        def restore_one(act: Callable[[], list[str]]) -> None:
            attempt("restore a git repository", lambda: restored.extend(act()))

        for folder, before in self._present_folders().items():
            restore_one(functools.partial(_restore_folder, folder, before.state))
        for entry, state in self._entries.items():
            restore_one(functools.partial(_restore_entry, entry, state))
        return restored

    def _present_folders(self) -> dict[Path, FolderState]:
        """The recorded git directories where they are now: commands may have moved them."""
        present = {folder: state for folder, state in self._folders.items() if _is_real(folder)}
        at_place = {_identity(folder) for folder in present}
        moved = {
            before.identity: before
            for before in self._folders.values()
            if before.identity not in at_place
        }
        if moved and self._search[0] is not None:
            for folder in find_repositories(self._search[0]).folders:
                before = moved.get(_identity(folder))
                if before is not None:
                    present.setdefault(folder, before)
        return present

    def end(self) -> None:
        """Forget the record: from here on the user may change the repositories."""
        self._folders, self._entries = {}, {}


def _is_real(folder: Path) -> bool:
    """Whether a path leads to a folder without any symbolic link."""
    return folder.is_dir() and os.path.realpath(folder) == str(folder)


def _identity(folder: Path) -> tuple[int, int]:
    try:
        facts = folder.lstat()
    except OSError:
        return (0, 0)
    return facts.st_dev, facts.st_ino


def _folder_state(folder: Path) -> FolderState | None:
    return FolderState(_identity(folder), read_state(folder)) if _is_real(folder) else None


def _entry_state(entry: Path) -> EntryState:
    link = str(entry.readlink()) if entry.is_symlink() else ""
    content = None if link or entry.is_dir() else read_file(entry)
    folder = git_directory(entry)
    folders = () if folder is None else (folder, common_directory(folder))
    return EntryState(content, link, folders, effective_state(entry))


def _restore_entry(entry: Path, before: EntryState) -> list[str]:
    """Undo a change of what leads to the git directory, if git would run something else."""
    now = _entry_state(entry)
    if now.leads_to_the_same(before) or now.state is None:
        return []
    if before.state is not None and now.state.runs_the_same(before.state):
        return []
    with open_folder(entry.parent) as parent:
        move_aside(entry.name, parent)
        if before.link:
            os.symlink(before.link, entry.name, dir_fd=parent)
        elif before.content is not None and not before.content.startswith(UNREADABLE_MARK):
            _write(entry.name, before.content, parent)
    return [str(entry)]


def _restore_folder(folder: Path, before: RepositoryState) -> list[str]:
    now = read_state(folder)
    if now == before:
        return []
    names = []
    if before.files.get(COMMON_FILE) != now.files.get(COMMON_FILE):
        names.append(COMMON_FILE)
    if before.files != now.files and before.programs() != now.programs():
        names += [name for name in CONFIG_FILES if before.files.get(name) != now.files.get(name)]
    hooks = sorted(before.hooks.keys() | now.hooks.keys())
    changed = [name for name in hooks if before.hooks.get(name) != now.hooks.get(name)]
    if names or changed:
        with open_folder(folder) as parent:
            for name in names:
                _put_back(name, before.files.get(name), parent)
            if changed:
                _restore_hooks(changed, before.hooks, parent)
    return [str(folder / name) for name in [*names, *(f"{HOOKS}/{each}" for each in changed)]]


def _restore_hooks(changed: list[str], before: dict[str, bytes], parent: int) -> None:
    """Restore hooks; an empty name stands for something else in place of their folder."""
    if "" in changed:
        _put_back(HOOKS, before.get(""), parent)
        changed = [name for name in before if name]
        if not changed:
            return
    _make_folder(HOOKS, parent)
    handle = os.open(HOOKS, real_paths.FOLDER_FLAGS, dir_fd=parent)
    try:
        _make_writable(handle)
        for name in changed:
            _put_back(name, before.get(name), handle, 0o755)
    finally:
        os.close(handle)


def _make_folder(name: str, parent: int) -> None:
    """A folder of that name, whatever else is there."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            return
        move_aside(name, parent)
    except FileNotFoundError:
        pass
    os.mkdir(name, dir_fd=parent)


def _make_writable(handle: int) -> None:
    """Give the owner of a folder all rights: a command may have taken them."""
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        path = Path(f"/proc/self/fd/{handle}")  # a handle without rights cannot be changed itself
        if path.exists():
            path.chmod(mode | stat.S_IRWXU)
        else:
            os.fchmod(handle, mode | stat.S_IRWXU)


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """A folder of the user as a descriptor, opened without following any symbolic link."""
    with real_paths.open_parent(folder / "_") as handle:
        _make_writable(handle)
        yield handle


def _put_back(name: str, content: bytes | None, parent: int, mode: int = 0o644) -> None:
    """Move what is there aside, and write the former content, which may be that of a link."""
    move_aside(name, parent)
    if content is not None and content.startswith(LINK_MARK):
        os.symlink(content.removeprefix(LINK_MARK), os.fsencode(name), dir_fd=parent)
    elif content is not None and not content.startswith(UNREADABLE_MARK):
        _write(name, content, parent, mode)


def _write(name: str, content: bytes, parent: int, mode: int = 0o644) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, mode, dir_fd=parent), "wb") as file:
        file.write(content)


def move_aside(name: str, parent: int) -> None:
    """Rename an entry, if it is there, to a name that is free."""
    aside = f"{name}{REVERTED_SUFFIX}"
    with contextlib.suppress(FileNotFoundError):
        os.stat(aside, dir_fd=parent, follow_symlinks=False)
        aside += f"-{os.urandom(4).hex()}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
