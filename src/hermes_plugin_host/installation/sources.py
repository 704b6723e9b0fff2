"""Where a plugin comes from: a folder, a git repository, or a package index."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_core.errors import FetchError, UsageError
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Iterator

SourceKind = Literal["path", "git", "package"]
IGNORED: Final = (".git", "__pycache__", "*.pyc", ".venv", "node_modules")
PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,-]+\])?([=<>!~]=?[\w.*+!-]+)?")
GIT_SECONDS: Final = 300
MAX_PLUGIN_BYTES: Final = 200 << 20
# No hooks and helpers of the repository, no questions.
GIT_OPTIONS: Final = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.ext.allow=never",
    "-c", "advice.detachedHead=false",
)  # fmt: skip


class PluginSource(NamedTuple):
    """A kind of source and its location."""

    kind: SourceKind
    location: str
    ref: str = ""  # branch or tag of a repository

    @classmethod
    def parse(cls, text: str) -> PluginSource:
        """Read what a user gives; UsageError if it is none of the three."""
        if not text.strip():
            raise UsageError("Give a folder, a git URL or the name of a package.")
        path = Path(text).expanduser()
        if path.is_dir() and not (path / "objects").is_dir():  # not a bare repository
            return cls("path", str(path.resolve()))
        location, _, ref = text.partition("#")
        is_repository = "://" in text or text.startswith("git@") or location.endswith(".git")
        if is_repository or path.is_dir():
            return cls("git", location, ref)
        if PACKAGE.fullmatch(text):
            return cls("package", text)
        raise UsageError(f"{text!r} is neither a folder nor a git URL nor the name of a package.")


def copy_folder(source: Path, target: Path) -> None:
    """Copy the files of a plugin; symbolic links, special files and huge folders are refused."""
    size = 0
    for path in _files(source):
        status = path.lstat()
        kind = _refused_kind(status.st_mode)
        if kind:
            raise FetchError(f"the plugin contains {kind}: {path.relative_to(source)}")
        size += status.st_size
    if size > MAX_PLUGIN_BYTES:
        limit = MAX_PLUGIN_BYTES >> 20
        raise FetchError(f"the plugin has {size >> 20} MiB of files; {limit} MiB are allowed")
    try:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*IGNORED))
    except (OSError, shutil.Error) as error:
        raise FetchError(f"the plugin cannot be copied: {error}") from error


def _refused_kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "" if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else "a special file"


def _files(folder: Path) -> Iterator[Path]:
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        yield from (Path(base) / name for name in (*folders, *files))


def clone(source: PluginSource, target: Path) -> str:
    """Copy the files of a repository; returns the commit."""
    checkout = target.with_name(f"{target.name}-checkout")
    branch = ["--branch", source.ref] if source.ref else []
    _git("clone", "--quiet", "--depth", "1", *branch, "--", source.location, str(checkout))
    commit = _git("-C", str(checkout), "rev-parse", "HEAD").strip()
    copy_folder(checkout, target)
    return commit


def _git(*arguments: str) -> str:
    git = system_program("git")
    if git is None:
        raise FetchError("git is not installed")
    try:
        process = subprocess.run(
            [git, *GIT_OPTIONS, *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"git: {error}") from error
    if process.returncode:
        raise FetchError(f"git: {process.stderr.strip() or process.returncode}")
    return process.stdout
