"""A git repository in HERMES_HOME with the states of one folder.

Every method that writes is called while the repository's lock is held, so a lock file of git
that is found then was left by a process that was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import time
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.git_process import GitProcess
from hermes_agent.checkpoints.records import DEFAULT_EXCLUDES, Checkpoint
from hermes_core.errors import CheckpointError, FolderTooLargeError
from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hermes_agent.checkpoints.folder_files import FolderFiles
    from hermes_agent.checkpoints.git_process import BlobReader

log = logging.getLogger(__name__)

REFS: Final = "refs/hermes/"
NO_OBJECT: Final = "0" * 40
# Settings of the repository. Contents are stored byte for byte: no attribute of the folder
# converts them.
CONFIG: Final = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = false
\tautocrlf = false
\tsafecrlf = false
\tprecomposeunicode = false
\tprotectNTFS = false
\tprotectHFS = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tfsmonitor = false
\tlogAllRefUpdates = false
\tlooseCompression = 1
\tquotePath = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[diff]
\trenames = false
"""
ATTRIBUTES: Final = "* -text !eol -ident !filter !working-tree-encoding !diff !merge\n"
HEAD: Final = "ref: refs/heads/none\n"
INDEX_TREE: Final = "index-tree"  # the version of the index, and its tree
COMPARED_INDEX: Final = "compared-index"
MAX_TOUCHED: Final = 20  # files with new times and old contents
MAX_UNREADABLE: Final = 20  # files that git refuses before a snapshot fails
UNPROCESSED: Final = "fatal: Unable to process path "
COMMITTER: Final = "Hermes <hermes@localhost>"
OBJECT_MODE: Final = 0o444


class TreeFile(NamedTuple):
    """A file in a tree: its mode of git, and the ID of its content."""

    mode: str
    blob: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link; its content is the target."""
        return self.mode == "120000"

    @property
    def is_executable(self) -> bool:
        """Whether its owner may execute it."""
        return self.mode == "100755"


class FolderSnapshot(NamedTuple):
    """The state of a folder: a tree, and the permissions of its files."""

    tree: str
    modes: Mapping[bytes, int]


class ShadowRepository:
    """The stored states of a folder."""

    def __init__(self, program: str, git_folder: Path, folder: Path) -> None:
        self._git_folder = git_folder
        self._git = GitProcess(program, git_folder, folder)
        self.prefix = b"" if folder.parent != folder else os.fsencode(folder)  # of shown paths

    def prepare(self, excludes: Iterable[str]) -> None:
        """Create the repository, complete an interrupted creation, remove stale lock files."""
        root = self._git_folder
        for name in ("objects", "refs", "info"):
            private_folder(root / name)
        _write(root / "config", CONFIG)
        _write(root / "info" / "attributes", ATTRIBUTES)
        _write(root / "info" / "exclude", "\n".join((*DEFAULT_EXCLUDES, *excludes)) + "\n")
        _write(root / "HEAD", HEAD)
        for name in ("index.lock", f"{COMPARED_INDEX}.lock", "packed-refs.lock"):
            (root / name).unlink(missing_ok=True)

    @property
    def exists(self) -> bool:
        """Whether the repository was created."""
        return (self._git_folder / "HEAD").exists()

    # Snapshots

    def take_snapshot(self, files: FolderFiles, *, only_known: bool = False) -> FolderSnapshot:
        """Store the state of the folder; *only_known* leaves new files out."""
        index = self._git_folder / "index"
        try:
            return self._take_snapshot(files, only_known=only_known)
        except FolderTooLargeError:
            raise
        except CheckpointError as error:
            if not index.exists():
                raise
            log.warning("checkpoint failed, the folder is read again: %s", error)
        index.unlink()  # it may be damaged
        return self._take_snapshot(files, only_known=False)

    def _take_snapshot(self, files: FolderFiles, *, only_known: bool) -> FolderSnapshot:
        index_time = _changed_at(self._git_folder / "index")
        contents = files.listed(self._git, index_time, only_known=only_known)
        if contents.dropped:
            lines = b"".join(
                b"0 %b\t%b\0" % (NO_OBJECT.encode(), path) for path in contents.dropped
            )
            self._git.run_in_folder("update-index", "-z", "--index-info", data=lines)
        paths = contents.paths
        is_stale = contents.touched > len(paths) + MAX_TOUCHED
        for _ in range(MAX_UNREADABLE if paths or is_stale else 0):
            refused = self._update_index(paths, is_stale=is_stale)
            if refused is None:
                break
            paths = [path for path in paths if path != refused]
        return FolderSnapshot(self._tree_of_index(), contents.modes)

    def _tree_of_index(self) -> str:
        """The tree of the index; that of an index that has not changed is known."""
        known = self._git_folder / INDEX_TREE
        version = _version(self._git_folder / "index")
        with contextlib.suppress(OSError, ValueError):
            stored, tree = known.read_text("ascii").split()
            if stored == version:
                return tree
        tree = self._git.run("write-tree").decode().strip()
        # write-tree stores the trees in the index, too.
        _write(known, f"{_version(self._git_folder / 'index')} {tree}\n")
        return tree

    def _update_index(self, paths: list[bytes], *, is_stale: bool) -> bytes | None:
        """Store files; returns one that git cannot read, after which nothing is stored.

        The index is stale if many files have new times and old contents: git would compare
        them each time.
        """
        data = b"".join(path + b"\0" for path in paths)
        refresh = ("-q", "--refresh") if is_stale else ()
        options = (*refresh, "--add", "--remove", "--replace", "-z", "--stdin")
        try:
            self._git.run_in_folder("update-index", *options, data=data)
        except CheckpointError as error:
            _, is_found, rest = str(error).partition(UNPROCESSED)
            refused = os.fsencode(rest)
            if not is_found or refused not in paths:
                raise
            return refused
        return None

    # Records

    def write(self, record: Checkpoint) -> None:
        """Store a record in one step; a closed one replaces the open one with its number."""
        ref = f"{REFS}{record.number:09}"
        # The parent of a closed one is the open one, which has the tree before the turn.
        tree, parent = (record.after, self._read_ref(ref)) if record.after else (record.before, "")
        commit = write_commit(self._git_folder, tree, parent, record.encoded())
        private_folder(self._git_folder / REFS)
        # As `update-ref` does, without a process. A leftover of a killed process is not a ref.
        new = self._git_folder / "new-ref"
        new.write_text(f"{commit}\n", "ascii")
        new.replace(self._git_folder / ref)

    def _read_ref(self, ref: str) -> str:
        try:
            return (self._git_folder / ref).read_text("ascii").strip()
        except FileNotFoundError:  # it was packed
            return self._git.run("rev-parse", "--verify", ref).decode().strip()

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove records; their contents stay until `reclaim`."""
        lines = "".join(f"delete {REFS}{number:09}\n" for number in numbers)
        if lines:
            for lock in (self._git_folder / REFS).glob("*.lock"):
                lock.unlink(missing_ok=True)
            self._git.run("update-ref", "--stdin", data=lines.encode())

    def records(self) -> list[Checkpoint]:
        """All records, oldest first; none if a cleanup has just removed the last one."""
        try:
            output = self._git.run("for-each-ref", "--format=%(contents)", REFS)
        except CheckpointError:
            if self.exists:
                raise
            return []
        parsed = (Checkpoint.parse(line) for line in output.splitlines() if line)
        return sorted((each for each in parsed if each is not None), key=lambda each: each.number)

    # Trees

    def states(self, tree: str) -> dict[bytes, TreeFile]:
        """The files of a tree."""
        found = {}
        for record in self._git.run("ls-tree", "-rz", tree).split(b"\0"):
            head, _, path = record.partition(b"\t")
            fields = head.decode().split()
            if len(fields) == 3 and fields[1] == "blob":
                found[path] = TreeFile(fields[0], fields[2])
        return found

    def changed_paths(self, before: str, after: str) -> list[bytes]:
        """The paths that differ between two trees."""
        if before == after:
            return []
        options = ("-r", "-z", "--no-renames", "--name-only")
        output = self._git.run("diff-tree", *options, before, after)
        return [path for path in output.split(b"\0") if path]

    def diff(
        self, before: Mapping[bytes, TreeFile], after: Mapping[bytes, TreeFile], limit: int
    ) -> str:
        """The differences of two sets of files as a unified diff."""
        trees = self.tree_of(before), self.tree_of(after)
        options = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        output = self._git.run("diff-tree", *options, *trees)
        text = output[:limit].decode("utf-8", errors="replace")
        cut = len(output) - limit
        return text if cut <= 0 else f"{text}\n[… {cut:,} bytes cut …]\n"

    def tree_of(self, states: Mapping[bytes, TreeFile]) -> str:
        """The tree of some stored files."""
        (self._git_folder / COMPARED_INDEX).unlink(missing_ok=True)
        if not states:
            return self._git.run("mktree").decode().strip()
        lines = b"".join(
            f"{state.mode} {state.blob}\t".encode() + path + b"\0" for path, state in states.items()
        )
        index = COMPARED_INDEX
        self._git.run("update-index", "-z", "--index-info", data=lines, index=index)
        return self._git.run("write-tree", index=index).decode().strip()

    def ignores(self, path: bytes) -> bool:
        """Whether a path of the folder is left out by a .gitignore or by our own list."""
        return self._git.ignores(path)

    def contents(self) -> contextlib.AbstractContextManager[BlobReader]:
        """A reader of stored file contents."""
        return self._git.contents()

    # Space

    def size(self) -> int:
        """The bytes on disk."""
        return sum(
            _file_size(f"{folder}/{name}")
            for folder, _, names in os.walk(self._git_folder)
            for name in names
        )

    def reclaim(self) -> None:
        """Delete contents that no record uses, pack the others if there is space for a copy."""
        (self._git_folder / INDEX_TREE).unlink(missing_ok=True)  # its objects may be deleted
        for leftover in (self._git_folder / "objects").rglob("tmp_*"):
            _remove(leftover)
        self._git.run("prune", "--expire=now")
        free = shutil.disk_usage(self._git_folder).free
        if self._loose_count() > MAX_LOOSE and free > 2 * self.size():
            self._git.run("repack", "-adq")
            self._git.run("prune-packed", "-q")
            self._git.run("pack-refs", "--all")

    def _loose_count(self) -> int:
        fields = self._git.run("count-objects").split()
        return int(fields[0]) if fields else 0


MAX_LOOSE: Final = 2_000


def _write(path: Path, text: str) -> None:
    """Write a private file in one step, if it differs."""
    with contextlib.suppress(OSError):
        if path.read_text("utf-8") == text:
            return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def _changed_at(path: Path) -> int:
    """When a file was written, in nanoseconds; 0 without one."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _version(path: Path) -> str:
    """What identifies a version of a file that is replaced by each change."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return "none"
    return f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"


def _file_size(path: str) -> int:
    try:
        facts = os.lstat(path)
    except OSError:
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_commit(git_folder: Path, tree: str, parent: str, message: bytes) -> str:
    """Store a commit as `git commit-tree` does, without a process; returns its ID.

    An empty *parent* means none.
    """
    signed = f"{COMMITTER} {int(time.time())} +0000"
    head = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    head += f"author {signed}\ncommitter {signed}\n\n"
    body = head.encode() + message
    stored = b"commit %d\0" % len(body) + body
    object_id = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
    _write_object(git_folder / "objects", object_id, zlib.compress(stored, 1))
    return object_id


def _write_object(objects: Path, object_id: str, data: bytes) -> None:
    """Write a loose object in one step; a leftover of a killed process is named as git's."""
    path = private_folder(objects / object_id[:2]) / object_id[2:]
    temporary = objects / f"tmp_obj_{os.getpid()}_{object_id}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, OBJECT_MODE), "wb") as file:
        file.write(data)
    temporary.replace(path)
