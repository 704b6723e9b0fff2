"""The files of a folder that belong into a checkpoint."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.git_process import NO_INDEX
from hermes_agent.checkpoints.limits import MEGABYTE, is_secret_name
from hermes_core.errors import FolderTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.checkpoints.git_process import GitProcess
    from hermes_agent.checkpoints.limits import CheckpointLimits
    from hermes_agent.permissions.file_access import FileAccess

MAX_NESTED: Final = 5  # repositories inside one another
TOO_MANY_FILES: Final = (
    "No checkpoints of {folder} are kept: it has more than {limit:,} files. Add folders that need "
    "none to .gitignore, or raise the setting checkpoints.max_files."
)
TOO_MANY_BYTES: Final = (
    "No checkpoints of {folder} are kept: its files have more than {limit:,} MB. Add folders that "
    "need none to .gitignore, or raise the setting checkpoints.max_folder_mb."
)


class FolderContents(NamedTuple):
    """What a listing found: paths relative to the folder."""

    paths: list[bytes]  # to be stored, or removed from the index where they are missing
    modes: dict[bytes, int]  # permissions of regular files
    dropped: list[bytes]  # in the index, and no longer to be stored


class FolderFiles:
    """Lists a folder within limits."""

    def __init__(self, folder: Path, limits: CheckpointLimits, access: FileAccess) -> None:
        self._folder = folder
        self._prefix = os.fsencode(folder) + b"/"
        self._limits = limits
        self._access = access
        self._hidden = [
            os.fsencode(path.relative_to(folder)) for path in access.hidden_below(folder)
        ]

    def listed(self, git: GitProcess, *, only_known: bool) -> FolderContents:
        """The contents; raises FolderTooLargeError beyond a limit, without reading on.

        Without new files, *only_known*, there is no limit.
        """
        limits, found = self._limits, FolderContents([], {}, [])
        count = total = 0
        for is_known, path in self._entries(git, only_known=only_known):
            facts = self._facts(path)
            if facts is None:
                if is_known:
                    found.paths.append(path)  # it is gone
                continue
            if self._is_left_out(path, facts):
                if is_known:
                    found.dropped.append(path)
                continue
            count, total = count + 1, total + facts.st_size
            if count > limits.max_files and not only_known:
                raise self._too_large(TOO_MANY_FILES, limits.max_files)
            if total > limits.max_folder_bytes and not only_known:
                raise self._too_large(TOO_MANY_BYTES, limits.max_folder_bytes // MEGABYTE)
            if stat.S_ISREG(facts.st_mode):
                found.modes[path] = stat.S_IMODE(facts.st_mode)
                if not os.access(self._prefix + path, os.R_OK):
                    continue  # what is stored of it stays
            found.paths.append(path)
        return found

    def _too_large(self, text: str, limit: int) -> FolderTooLargeError:
        return FolderTooLargeError(text.format(folder=self._folder, limit=limit))

    def _entries(self, git: GitProcess, *, only_known: bool) -> Iterator[tuple[bool, bytes]]:
        """Paths, each with whether the index knows it; ignored ones only if it does."""
        kinds = "-zct" if only_known else "-zcot"
        excluded = [f"--exclude=/{os.fsdecode(path)}" for path in self._hidden]
        with git.records("ls-files", kinds, "--exclude-standard", *excluded) as records:
            for record in records:
                tag, path = record[:1], record[2:]
                if path.endswith(b"/"):
                    yield from ((False, inner) for inner in self._nested(git, path, 1))
                else:
                    yield tag != b"?", path

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
        if is_secret_name(path) or any(
            path == hidden or path.startswith(hidden + b"/") for hidden in self._hidden
        ):
            return True
        return is_file and facts.st_nlink > 1 and self._access.is_hidden_identity(facts)


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
