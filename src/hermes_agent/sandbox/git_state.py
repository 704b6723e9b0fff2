"""The repositories of a working folder, and what of them makes git run programs.

Everything is read as git would read it: a `.git` entry may be a folder, a file or a symbolic
link that names one, and a git directory may name another one for its hooks and settings.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.sandbox.policy import git_folders
from hermes_core.system_programs import SYSTEM_PATH, system_program

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 3  # of nested repositories below the working folder
MAX_FOLDERS: Final = 500
MAX_BYTES: Final = 1_000_000  # of a hook, or of a file with settings
PARSE_SECONDS: Final = 10.0
SKIPPED_FOLDERS: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target"})
CONFIG_FILES: Final = ("config", "config.worktree")
COMMON_FILE: Final = "commondir"  # names the directory with the hooks and the settings
HOOKS: Final = "hooks"
UNREADABLE_MARK: Final = b"\0"  # begins a description of what is not a readable file
LINK_MARK: Final = UNREADABLE_MARK + b"link "
IGNORED_HOOKS: Final = re.compile(r".*\.(sample|reverted(-\w+)?)")
# Keys whose value git runs, or which lead to a file with such keys, or to another server.
PROGRAM_KEYS: Final = re.compile(
    r"alias\..+|pager\..+|filter\..+|include(if\..*)?\.path|credential\.(.+\.)?helper"
    r"|core\.(hookspath|fsmonitor|pager|editor|sshcommand|askpass|gitproxy|attributesfile"
    r"|alternaterefscommand)"
    r"|diff\.external|diff\..+\.(command|textconv)|merge\..+\.driver|gpg\.(.+\.)?program"
    r"|gpg\..+command|(sequence|interactive)\..+|(diff|merge|gui)tool\..+"
    r"|(man|browser)\..+\.(cmd|path)|hook\..+|tar\..+\.command|gc\..+hook|sendemail\..+|imap\..+"
    r"|remote\..+\.(uploadpack|receivepack|vcs)|submodule\..+\.update|trailer\..+\.(command|cmd)"
    r"|uploadpack\.packobjectshook|init\.templatedir|protocol\..*allow|url\..+\.(push)?insteadof"
    r"|lfs\.(customtransfer|extension)\..+|instaweb\..+",
    re.IGNORECASE,
)


class RepositoryState(NamedTuple):
    """The hooks of a git directory and its files with settings."""

    hooks: dict[str, bytes]
    files: dict[str, bytes]

    def programs(self) -> set[tuple[str, str]]:
        """The settings that name programs, with their values."""
        configs = (self.files[name] for name in CONFIG_FILES if name in self.files)
        return {setting for data in configs for setting in program_settings(data)}

    def runs_the_same(self, other: RepositoryState) -> bool:
        """Whether git runs the same programs with both."""
        if self.hooks != other.hooks:
            return False
        return self.files == other.files or self.programs() == other.programs()


class Repositories(NamedTuple):
    """Git directories by their real paths, and the entries `.git` that lead to one."""

    folders: list[Path]
    entries: list[Path]


def find_repositories(workspace: Path) -> Repositories:
    """The repositories that a working folder belongs to and contains."""
    workspace = Path(os.path.realpath(workspace))
    entries = [*_enclosing_entry(workspace), *_nested_entries(workspace)]
    own = [Path(os.path.realpath(folder)) for folder in git_folders(workspace)]
    folders = dict.fromkeys(own)
    for entry in entries:
        folder = git_directory(entry)
        if folder is not None:
            folders |= dict.fromkeys((folder, common_directory(folder)))
    for folder in list(folders):
        folders |= dict.fromkeys(_directories_below(folder))
    writable = (workspace, *own)  # what commands cannot write needs no guard
    return Repositories(
        [folder for folder in folders if any(folder.is_relative_to(each) for each in writable)],
        entries,
    )


def _enclosing_entry(workspace: Path) -> Iterator[Path]:
    for folder in workspace.parents:
        if os.path.lexists(folder / ".git"):
            yield folder / ".git"
            return


def _nested_entries(workspace: Path) -> list[Path]:
    """The entries `.git` of a folder and below it, those of the upper levels first."""
    level, seen = [workspace], 0
    found = _git_entries(level)
    for _ in range(MAX_DEPTH):
        below: list[Path] = []
        for folder in level:
            inner = [Path(entry.path) for entry in _entries(folder) if _is_searched(entry)]
            found += _git_entries(inner)
            below += inner
            seen += len(inner)
            if seen > MAX_FOLDERS:
                return found
        level = below
    return found


def _git_entries(folders: list[Path]) -> list[Path]:
    return [folder / ".git" for folder in folders if os.path.lexists(folder / ".git")]


def _is_searched(entry: os.DirEntry[str]) -> bool:
    return _is_real(entry) and entry.name != ".git" and entry.name not in SKIPPED_FOLDERS


def _directories_below(folder: Path) -> Iterator[Path]:
    """The git directories of submodules and worktrees, which lie in that of the repository."""
    for entry in _entries(folder / "worktrees"):
        yield Path(entry.path)
    level = [folder / "modules"]
    for _ in range(MAX_DEPTH):
        level = [Path(entry.path) for each in level for entry in _entries(each) if _is_real(entry)]
        yield from (each for each in level[:MAX_FOLDERS] if (each / "HEAD").exists())


def _is_real(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def git_directory(entry: Path) -> Path | None:
    """The real path of the git directory that an entry `.git` is or names."""
    target = entry
    if not entry.is_symlink() and entry.is_file():
        data = read_file(entry) or b""
        target = entry.parent / os.fsdecode(data.removeprefix(b"gitdir:").strip() or b"\0")
    try:
        real = Path(os.path.realpath(target))
        return real if real.is_dir() else None
    except ValueError:  # a NUL character
        return None


def common_directory(folder: Path) -> Path:
    """The directory from which git takes the hooks and the settings of a git directory."""
    data = read_file(folder / COMMON_FILE)
    if not data or data.startswith(UNREADABLE_MARK):
        return folder
    return Path(os.path.realpath(folder / os.fsdecode(data.strip().replace(UNREADABLE_MARK, b""))))


def effective_state(entry: Path) -> RepositoryState | None:
    """What git runs in the working tree of an entry `.git`."""
    folder = git_directory(entry)
    if folder is None:
        return None
    common = read_state(common_directory(folder))
    worktree = read_file(folder / CONFIG_FILES[1])
    own = {} if worktree is None else {CONFIG_FILES[1]: worktree}
    files = {name: data for name, data in common.files.items() if name != COMMON_FILE}
    return RepositoryState(common.hooks, {**files, **own})


def read_state(folder: Path) -> RepositoryState:
    """The hooks and settings in one git directory."""
    names = (*CONFIG_FILES, COMMON_FILE)
    files = {name: data for name in names if (data := read_file(folder / name)) is not None}
    return RepositoryState(_hooks(folder / HOOKS), files)


def _hooks(hooks: Path) -> dict[str, bytes]:
    """The hooks that git would run; a link in place of their folder counts as one of them."""
    if hooks.is_symlink():
        return {"": LINK_MARK + os.fsencode(hooks.readlink())}
    try:
        names = os.listdir(hooks)  # noqa: PTH208 - names, not paths
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:  # git can run a hook in a folder that cannot be listed
        return {"": UNREADABLE_MARK + str(error.errno).encode()}
    kept = (name for name in names if not IGNORED_HOOKS.fullmatch(name))
    return {name: data for name in kept if (data := read_hook(hooks / name)) is not None}


def read_hook(path: Path) -> bytes | None:
    """The content of a hook, or what a link or something else in its place is."""
    if path.is_symlink():
        return LINK_MARK + os.fsencode(path.readlink())
    return read_file(path)


def read_file(path: Path) -> bytes | None:
    """The content of a file, links followed; None without one.

    A file that cannot be read, or not in a moment, is described by what changes with it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return UNREADABLE_MARK + str(error.errno).encode()
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
            return (
                UNREADABLE_MARK + f"{facts.st_mode:o} {facts.st_size} {facts.st_ctime_ns}".encode()
            )
        return file.read()


def program_settings(data: bytes) -> set[tuple[str, str]]:
    """The settings of a file that name programs, as git itself reads them.

    A file that git cannot read counts as a setting: it equals only itself.
    """
    unknown = {("", hashlib.sha256(data).hexdigest())}
    program = system_program("git")
    if program is None or data.startswith(UNREADABLE_MARK):
        return unknown
    done = subprocess.run(
        [program, "config", "--file", "-", "--no-includes", "--list", "-z"],
        input=data, capture_output=True, check=False, timeout=PARSE_SECONDS, cwd="/",
        env={"PATH": SYSTEM_PATH, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/"},
    )  # fmt: skip
    if done.returncode != 0:
        return unknown
    lines = done.stdout.decode(errors="surrogateescape").split("\0")
    pairs = (line.partition("\n") for line in lines if line)
    return {(key, value) for key, _, value in pairs if PROGRAM_KEYS.fullmatch(key)}
