"""The files of a folder that belong into a checkpoint."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.git_process import NO_INDEX
from hermes_agent.checkpoints.records import MEGABYTE, is_secret_name
from hermes_core.errors import FolderTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_agent.checkpoints.git_process import GitProcess
    from hermes_agent.checkpoints.records import CheckpointLimits
    from hermes_agent.permissions.file_access import FileAccess

KNOWN, CHANGED, NEW = b"H", b"C", b"?"  # tags of `git ls-files`
MAX_NESTED: Final = 5  # repositories inside one another
TOO_MANY_FILES: Final = (
    "No checkpoints of {folder} are kept: it has more than {limit:,} files. Add folders that do "
    "not need any to .gitignore, or raise the setting checkpoints.max_files."
)
TOO_MANY_BYTES: Final = (
    "No checkpoints of {folder} are kept: its files have more than {limit:,} MB. Add folders that "
    "do not need any to .gitignore, or raise the setting checkpoints.max_folder_mb."
)


HOLDS_CREDENTIALS: Final = "may hold credentials or belongs to Hermes, so no copy is kept"
TOO_LARGE_FILE: Final = "too large, so no copy is kept"


class FolderContents(NamedTuple):
    """What a listing found: paths relative to the folder."""

    paths: list[bytes]  # new or changed, to be stored; or gone
    modes: dict[bytes, int]  # permissions of regular files
    dropped: list[bytes]  # in the index, and no longer to be stored
    touched: int = 0  # known files that something happened to since the index was written


class FolderFiles:
    """Lists a folder within limits."""

    def __init__(self, folder: Path, limits: CheckpointLimits, access: FileAccess) -> None:
        self._folder = folder
        self._prefix = os.fsencode(folder) + b"/"
        self._limits = limits
        self._access = access
        self._user_id = os.geteuid()
        self._hidden = [
            os.fsencode(path.relative_to(folder)) for path in access.hidden_below(folder)
        ]

    def listed(self, git: GitProcess, index_time: int, *, only_known: bool) -> FolderContents:
        """The contents; raises FolderTooLargeError beyond a limit, without reading on.

        Without new files, *only_known*, there is no limit. *index_time* is in nanoseconds.
        """
        found = FolderContents([], {}, [])
        stored: set[bytes] = set()  # in the index, and to be stored again if they changed
        count = total = touched = 0
        for tag, path in self._entries(git, only_known=only_known):
            if tag == CHANGED:  # after the same path with the tag KNOWN
                if path in stored:
                    found.paths.append(path)
                continue
            facts = self._facts(path)
            if facts is None or self._is_left_out(path, facts):
                if tag == KNOWN:
                    (found.paths if facts is None else found.dropped).append(path)
                continue
            count, total = count + 1, total + facts.st_size
            if not only_known:
                self._check_limits(count, total)
            if stat.S_ISREG(facts.st_mode):
                found.modes[path] = stat.S_IMODE(facts.st_mode)
                if not self._is_readable(path, facts):
                    continue  # what is stored of it stays
            if tag == KNOWN:
                stored.add(path)
                touched += facts.st_ctime_ns > index_time
            else:
                found.paths.append(path)
        return found._replace(touched=touched)

    def _is_readable(self, path: bytes, facts: os.stat_result) -> bool:
        if facts.st_uid == self._user_id and facts.st_mode & stat.S_IRUSR:
            return True
        return os.access(self._prefix + path, os.R_OK)

    def _check_limits(self, count: int, total: int) -> None:
        limits = self._limits
        if count > limits.max_files:
            raise self._too_large(TOO_MANY_FILES, limits.max_files)
        if total > limits.max_folder_bytes:
            raise self._too_large(TOO_MANY_BYTES, limits.max_folder_bytes // MEGABYTE)

    def _too_large(self, text: str, limit: int) -> FolderTooLargeError:
        return FolderTooLargeError(text.format(folder=self._folder, limit=limit))

    def _entries(self, git: GitProcess, *, only_known: bool) -> Iterator[tuple[bytes, bytes]]:
        """Tags and paths; ignored ones only if the index has them."""
        kinds = "-zcmt" if only_known else "-zcmot"
        excluded = [f"--exclude=/{os.fsdecode(path)}" for path in self._hidden]
        with git.records("ls-files", kinds, "--exclude-standard", *excluded) as records:
            for record in records:
                tag, path = record[:1], record[2:]
                if path.endswith(b"/"):
                    yield from ((NEW, inner) for inner in self._nested(git, path, 1))
                else:
                    yield tag, path

    def _nested(self, git: GitProcess, prefix: bytes, depth: int) -> Iterator[bytes]:
        """The files of another repository inside the folder, by its own .gitignore."""
        inner = self._folder / os.fsdecode(prefix)
        if depth > MAX_NESTED or not inner.is_dir():
            return
        with git.records(
            "ls-files", "-zo", "--exclude-standard", folder=inner, index=NO_INDEX
        ) as records:
            for path in records:
                if path.endswith(b"/"):
                    yield from self._nested(git, prefix + path, depth + 1)
                else:
                    yield prefix + path

    def _facts(self, path: bytes) -> os.stat_result | None:
        try:
            return os.lstat(self._prefix + path)
        except OSError:
            return None

    def _is_left_out(self, path: bytes, facts: os.stat_result) -> bool:
        is_file = stat.S_ISREG(facts.st_mode)
        if not is_file and not stat.S_ISLNK(facts.st_mode):
            return True
        if is_file and facts.st_size > self._limits.max_file_bytes:
            return True
        return self._is_private(path, facts)

    def _is_private(self, path: bytes, facts: os.stat_result | None) -> bool:
        """Whether a file holds credentials or belongs to Hermes."""
        if is_secret_name(path) or (self._hidden and self._is_hidden(path)):
            return True
        if facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_nlink < 2:
            return False
        return self._access.is_hidden_identity(facts)

    def problem(self, path: bytes) -> str:
        """Why no copy of a file is kept; empty if one is."""
        facts = self._facts(path)
        if self._is_private(path, facts):
            return HOLDS_CREDENTIALS
        if facts is not None and self._is_left_out(path, facts):
            return TOO_LARGE_FILE
        return ""

    def _is_hidden(self, path: bytes) -> bool:
        return any(path == hidden or path.startswith(hidden + b"/") for hidden in self._hidden)


class NamedFiles(FolderFiles):
    """Single files of a folder instead of all that it has."""

    names: Sequence[bytes] = ()

    def listed(self, git: GitProcess, index_time: int, *, only_known: bool) -> FolderContents:
        """These files, whichever folder limits there are."""
        del git, index_time, only_known
        found = FolderContents([], {}, [])
        for path in self.names:
            facts = self._facts(path)
            if facts is not None and self._is_left_out(path, facts):
                found.dropped.append(path)
                continue
            found.paths.append(path)
            if facts is not None and stat.S_ISREG(facts.st_mode):
                found.modes[path] = stat.S_IMODE(facts.st_mode)
        return found


def display_path(path: bytes) -> str:
    """A path as one line of text, different for different paths."""
    text = path.decode("utf-8", errors="backslashreplace")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def real_folder(folder: Path) -> Path:
    """A folder without symbolic links."""
    return Path(os.path.realpath(folder))
