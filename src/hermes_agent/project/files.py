"""The files of a project that run code or widen rights, each read and hashed once.

They are in `.hermes`, `.claude` and `.agents` of the working folder and of the root of its
repository, and `.mcp.json` there. What is used of a file is what was hashed: nothing reads it
a second time. A file that is a link to a place outside of the project is not used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.sandbox.git_state import git_directory, read_file
from hermes_agent.tools.real_paths import open_file
from hermes_core.json_values import parse_object
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Iterator


def repository_root(cwd: Path) -> Path:
    """The nearest folder with a `.git`, from *cwd* up; *cwd* itself if there is none."""
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return start


def folders_to(cwd: Path) -> list[Path]:
    """The folders from the root of the repository down to *cwd*, both included."""
    start, root = Path(os.path.realpath(cwd)), repository_root(cwd)
    above = [folder for folder in start.parents if folder.is_relative_to(root)]
    return [*reversed(above), start]


BRANCH: Final = re.compile(rb"ref: refs/heads/([\w./+@#-]{1,100})\s*")


def git_branch(cwd: Path) -> str:
    """The branch that is checked out in *cwd*; empty without one."""
    folder = git_directory(repository_root(cwd) / ".git")
    match = BRANCH.fullmatch(read_file(folder / "HEAD") or b"") if folder else None
    return match[1].decode() if match else ""


log = logging.getLogger(__name__)

MCP_FILE: Final = ".mcp.json"
HOOK_FILES: Final = (".hermes/hooks.json", ".claude/settings.json")
COMMAND_FOLDERS: Final = (".claude/commands", ".hermes/commands")  # the last one takes precedence
SKILL_FOLDERS: Final = (".agents/skills", ".claude/skills", ".hermes/skills")
SKILL_FILE: Final = "SKILL.md"
MAX_FILES: Final = 2_000
MAX_FILE_BYTES: Final = 5_000_000
MAX_TEXT_BYTES: Final = 1_000_000  # of a file that is parsed
MAX_TOTAL_BYTES: Final = 50_000_000
BLOCK_BYTES: Final = 65_536


class FileKind(StrEnum):
    """What a file is used for."""

    MCP = "mcp"
    HOOKS = "hooks"
    COMMAND = "command"
    SKILL = "skill"
    SKILL_DATA = "skill-data"  # any other file of a skill


class ProjectFile(NamedTuple):
    """A file as it was read; of a file that is not parsed, only the digest is kept."""

    name: str  # relative to the root of the project
    path: Path  # the real path
    kind: FileKind
    folder: Path  # of a skill: its folder; of a command: the folder that names start from
    digest: str
    data: bytes = b""

    @property
    def text(self) -> str:
        """The text of a file that is parsed."""
        return self.data.decode("utf-8-sig", errors="replace")


class ProjectFiles(NamedTuple):
    """The files of one project; *folders* are those that were searched."""

    root: Path
    folders: tuple[Path, ...]
    files: tuple[ProjectFile, ...] = ()
    problems: tuple[str, ...] = ()  # files that cannot be used, with the reason


def read_project(cwd: Path) -> ProjectFiles:
    """Read the files of the project that *cwd* is in."""
    root, start = repository_root(cwd), Path(os.path.realpath(cwd))
    reader = _Reader(root)
    folders = tuple(dict.fromkeys((root, start)))
    for folder in folders:
        reader.read_folder(folder)
    return ProjectFiles(root, folders, tuple(reader.files.values()), tuple(reader.problems))


def read_digest(path: Path) -> tuple[bytes, str]:
    """The content of a small file and its digest; OSError if it cannot be read."""
    with os.fdopen(open_file(Path(os.path.realpath(path))), "rb") as file:
        data = file.read(MAX_FILE_BYTES)
    return data, hashlib.sha256(data).hexdigest()


class _Reader:
    """Reads files of a project, up to limits of number and size."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._access = FileAccess(hermes_home(), Path.home())
        self._remaining_bytes = MAX_TOTAL_BYTES
        self._has_reported_limit = False
        self.files: dict[Path, ProjectFile] = {}
        self.problems: list[str] = []

    def read_folder(self, folder: Path) -> None:
        """Read the files of one folder, without its subfolders."""
        self._read(folder / MCP_FILE, FileKind.MCP, folder)
        for name in HOOK_FILES:
            if not _is_hermes_home(folder / name.partition("/")[0]):
                self._read_hooks(folder / name, folder)
        for name in COMMAND_FOLDERS:
            if not _is_hermes_home(folder / name.partition("/")[0]):
                self._read_commands(folder / name)
        for name in SKILL_FOLDERS:
            if not _is_hermes_home(folder / name.partition("/")[0]):
                self._read_skills(folder / name)

    def _read_hooks(self, path: Path, folder: Path) -> None:
        """Settings without hooks run nothing."""
        file = self._read(path, FileKind.HOOKS, folder)
        if file is None or path.name != "settings.json":
            return
        settings = parse_object(file.text)
        if settings is not None and not settings.get("hooks"):
            del self.files[file.path]

    def _read_commands(self, folder: Path) -> None:
        real = self._real_folder(folder)
        for path in _files_below(real) if real else ():
            if path.suffix == ".md" and not self._is_full():
                self._read(path, FileKind.COMMAND, real or folder)

    def _read_skills(self, folder: Path) -> None:
        if self._real_folder(folder) is None:
            return
        for skill in _skill_folders(folder):
            real = self._real_folder(skill)
            for path in _files_below(real) if real else ():
                if not self._is_full():
                    is_main = real is not None and path == real / SKILL_FILE
                    kind = FileKind.SKILL if is_main else FileKind.SKILL_DATA
                    self._read(path, kind, real or skill)

    def _real_folder(self, folder: Path) -> Path | None:
        """The real path of a folder whose files may be read; None otherwise."""
        real = Path(os.path.realpath(folder))
        if not real.is_dir():
            return None
        problem = self._place_problem(folder, real)
        if problem:
            self._report(folder, problem)
        return None if problem else real

    def _is_full(self) -> bool:
        if len(self.files) < MAX_FILES:
            return False
        if not self._has_reported_limit:
            self._has_reported_limit = True
            self._report(self._root, f"it has more than {MAX_FILES:,} such files")
        return True

    def _read(self, path: Path, kind: FileKind, folder: Path) -> ProjectFile | None:
        if not os.path.lexists(path):
            return None
        real = Path(os.path.realpath(path))
        if real in self.files:
            return self.files[real]
        problem = self._place_problem(path, real)
        if not problem:
            try:
                file = self._load(real, kind, folder)
            except OSError as error:
                problem = f"it cannot be read: {error.strerror}"
            else:
                if isinstance(file, ProjectFile):
                    self.files[real] = file
                    return file
                problem = file
        self._report(path, problem)
        return None

    def _report(self, path: Path, problem: str) -> None:
        self.problems.append(f"{path}: {problem}")
        log.warning("project file %s ignored: %s", path, problem)

    def _place_problem(self, path: Path, real: Path) -> str:
        """Why a link, which a command could have made, is not followed; else empty."""
        if not real.is_relative_to(self._root):
            return f"it is a link to a place outside of {self._root}"
        if self._is_linked(path, real) and self._access.is_hidden(real, self._root):
            return "it is a link to a hidden file"
        return ""

    def _is_linked(self, path: Path, real: Path) -> bool:
        try:
            return path != real or (real.is_file() and real.stat().st_nlink > 1)
        except OSError:
            return True

    def _load(self, real: Path, kind: FileKind, folder: Path) -> ProjectFile | str:
        """The file, or the reason why it cannot be used."""
        is_parsed = kind is not FileKind.SKILL_DATA
        limit = min(MAX_TEXT_BYTES if is_parsed else MAX_FILE_BYTES, self._remaining_bytes)
        digest, kept, size = hashlib.sha256(), bytearray(), 0
        with os.fdopen(open_file(real), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "it is not a regular file"
            while block := file.read(BLOCK_BYTES):
                size += len(block)
                if size > limit:
                    return f"it is larger than {limit:,} bytes"
                digest.update(block)
                if is_parsed:
                    kept += block
        self._remaining_bytes -= size
        name = real.relative_to(self._root).as_posix()
        return ProjectFile(name, real, kind, folder, digest.hexdigest(), bytes(kept))


def _is_hermes_home(folder: Path) -> bool:
    """Whether `.hermes` of the home folder is the Hermes folder, whose files need no trust."""
    return os.path.realpath(folder) == os.path.realpath(hermes_home())


def _skill_folders(root: Path) -> Iterator[Path]:
    """Folders with a SKILL.md, one or two levels below *root*."""
    for folder in _folders_in(root):
        if (folder / SKILL_FILE).is_file():
            yield folder
        else:
            yield from (inner for inner in _folders_in(folder) if (inner / SKILL_FILE).is_file())


def _folders_in(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))]


def _files_below(folder: Path) -> Iterator[Path]:
    """The files below a folder by name; linked folders are not entered."""
    for base, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(base) / name for name in sorted(names))
