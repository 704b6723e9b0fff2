"""Keeps commands from planting code in existing git repositories.

Git runs the hooks of a repository and the programs named in its configuration when the user
works there later. A sandbox cannot protect single keys of a file that git must be able to
write, nor a hooks folder that does not exist yet. So both are recorded before a command and
restored after it; what was there instead is kept beside it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.sandbox.policy import git_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

SEARCH_SECONDS: Final = 10.0  # how long a search for repositories is used
MAX_DEPTH: Final = 3  # of nested repositories below the working folder
MAX_FOLDERS: Final = 500
MAX_HOOK_BYTES: Final = 1_000_000
SKIPPED_FOLDERS: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target"})
CONFIG_FILES: Final = ("config", "config.worktree")
LINK_MARK: Final = b"\0link "  # content that no hook has
REVERTED_SUFFIX: Final = ".reverted"
SECTION: Final = re.compile(r'^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)$')
# Keys whose value git runs, or which lead to a file with such keys.
PROGRAM_KEYS: Final = re.compile(
    r"alias\..+|pager\..+|filter\..+|include(if\..*)?\.path|credential\.(.+\.)?helper"
    r"|core\.(hookspath|fsmonitor|pager|editor|sshcommand|askpass|gitproxy|attributesfile)"
    r"|diff\.external|diff\..+\.(command|textconv)|merge\..+\.driver|gpg\.(.+\.)?program"
    r"|(sequence|interactive)\..+|(diff|merge|gui)tool\..+|(man|browser)\..+\.(cmd|path)"
    r"|remote\..+\.(uploadpack|receivepack|vcs)|submodule\..+\.update|trailer\..+\.(command|cmd)"
    r"|uploadpack\.packobjectshook|init\.templatedir|protocol\..*allow|url\..+\.insteadof",
    re.IGNORECASE,
)


class RepositoryState(NamedTuple):
    """The hooks and the configuration of a git directory."""

    hooks: dict[str, bytes]
    configs: dict[str, bytes]

    def programs(self) -> set[tuple[str, str]]:
        """The settings that name programs, with their values."""
        return {
            setting
            for data in self.configs.values()
            for setting in _settings(data.decode(errors="replace"))
            if PROGRAM_KEYS.fullmatch(setting[0])
        }


class GitGuard:
    """The state of the repositories of a conversation before its commands."""

    def __init__(self) -> None:
        self._before: dict[Path, RepositoryState] = {}
        self._search: tuple[Path | None, float, list[Path]] = (None, 0.0, [])

    def begin(self, workspace: Path, *, keeps: bool) -> None:
        """Record the repositories; *keeps* the earlier record of those with a running command."""
        now = {folder: _state(folder) for folder in self._repositories(workspace)}
        self._before = {**now, **self._before} if keeps else now

    def _repositories(self, workspace: Path) -> list[Path]:
        """The repositories; a search takes milliseconds, so it is used for a while."""
        searched, at, found = self._search
        if searched != workspace or time.monotonic() - at > SEARCH_SECONDS:
            found = repositories(workspace)
            self._search = (workspace, time.monotonic(), found)
        return found

    def restore(self) -> list[str]:
        """Undo what commands changed since `begin`; the files that were restored."""
        restored: list[str] = []
        for folder, before in self._before.items():
            if folder.is_dir():
                restored += _restore(folder, before)
        return restored


def repositories(workspace: Path) -> list[Path]:
    """The git directories of a working folder: its own, and those below it."""
    found = dict.fromkeys(git_folders(workspace))
    level, seen = [workspace], 0
    for _ in range(MAX_DEPTH):
        below: list[Path] = []
        for folder in level:
            for entry in _folders(folder):
                seen += 1
                if seen > MAX_FOLDERS:
                    return list(found)
                if entry.name == ".git":
                    found[Path(entry.path)] = None
                elif entry.name not in SKIPPED_FOLDERS:
                    below.append(Path(entry.path))
        level = below
    return list(found)


def _folders(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return


def _state(folder: Path) -> RepositoryState:
    hooks = {
        path.name: data
        for path in _hook_files(folder / "hooks")
        if (data := _read(path)) is not None
    }
    configs = {name: data for name in CONFIG_FILES if (data := _read(folder / name)) is not None}
    return RepositoryState(hooks, configs)


def _hook_files(hooks: Path) -> list[Path]:
    """The hooks that git would run, however they are stored."""
    try:
        names = os.listdir(hooks)  # noqa: PTH208 - a link in place of the folder counts, too
    except OSError:
        return []
    return [hooks / name for name in names if not name.endswith((".sample", REVERTED_SUFFIX))]


def _read(path: Path) -> bytes | None:
    """The content of a file, or what a link or something else in its place is."""
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return LINK_MARK + os.fsencode(path.readlink())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_HOOK_BYTES:
            return f"\0{facts.st_mode:o} {facts.st_size} {facts.st_mtime_ns}".encode()
        return path.read_bytes()
    except OSError:
        return None


def _restore(folder: Path, before: RepositoryState) -> list[str]:
    now, restored = _state(folder), []
    for name in sorted(before.hooks.keys() | now.hooks.keys()):
        if before.hooks.get(name) != now.hooks.get(name):
            _put_back(folder / "hooks" / name, before.hooks.get(name), is_program=True)
            restored.append(str(folder / "hooks" / name))
    if before.programs() != now.programs():
        for name in CONFIG_FILES:
            if before.configs.get(name) != now.configs.get(name):
                _put_back(folder / name, before.configs.get(name))
                restored.append(str(folder / name))
    return restored


def _put_back(path: Path, content: bytes | None, *, is_program: bool = False) -> None:
    """Move what is there aside, and write the former content."""
    aside = path.with_name(path.name + REVERTED_SUFFIX)
    if path.is_symlink() or path.exists():
        path.replace(aside)
    if content is None or content.startswith(b"\0"):
        if content is not None and content.startswith(LINK_MARK):
            path.symlink_to(os.fsdecode(content.removeprefix(LINK_MARK)))
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o755 if is_program else 0o644), "wb") as file:
            file.write(content)


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Every setting of a configuration as `section.subsection.key` and value."""
    prefix = ""
    for line in text.replace("\\\n", "").splitlines():
        match = SECTION.match(line)
        if match:
            prefix = f"{match[1].lower()}.{match[2]}." if match[2] else f"{match[1].lower()}."
        setting = match[3] if match else line  # it may follow a section on the same line
        key, _, value = setting.strip().partition("=")
        if key.strip() and not key.lstrip().startswith(("#", ";")):
            yield prefix + key.strip().lower(), value.strip()
