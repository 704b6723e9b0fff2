"""Runs the git binary on a repository of ours, isolated from the user's git.

No setting, hook, filter or variable of the user has an effect: configuration is read from the
repository of ours only, and a path is never interpreted as a pattern.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, Final

from hermes_core.errors import CheckpointError
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TIMEOUT_SECONDS: Final = 300.0
READ_BYTES: Final = 1 << 16
NO_INDEX: Final = "no-index"  # a file that never exists


def find_git() -> str | None:
    """The git binary of the system; None without one."""
    return system_program("git")


def isolated_environment() -> dict[str, str]:
    """The environment of git without any variable or setting of the user."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **inherited,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }


class GitProcess:
    """Commands of git on one repository and one working folder."""

    def __init__(self, program: str, git_folder: Path, work_tree: Path) -> None:
        self._program = program
        self._git_folder = git_folder
        self._work_tree = work_tree

    def run(self, *arguments: str, data: bytes = b"", index: str = "") -> bytes:
        """The output of a command that does not look at the working folder."""
        return self._run(arguments, self._git_folder, data, index)

    def run_in_folder(self, *arguments: str, data: bytes = b"") -> bytes:
        """The output of a command that reads the working folder."""
        return self._run(arguments, self._work_tree, data, "")

    def ignores(self, path: bytes) -> bool:
        """Whether a .gitignore or our own list leaves a path of the working folder out."""
        command = ("check-ignore", "-q", "--no-index", "-z", "--stdin")
        done = self._completed(command, self._work_tree, b"./" + path, "", is_literal=False)
        if done.returncode > 1:
            raise _failure(command, done)
        return done.returncode == 0

    def _run(self, arguments: Sequence[str], cwd: Path, data: bytes, index: str) -> bytes:
        done = self._completed(arguments, cwd, data, index)
        if done.returncode:
            raise _failure(arguments, done)
        return done.stdout

    def _completed(
        self,
        arguments: Sequence[str],
        cwd: Path,
        data: bytes,
        index: str,
        *,
        is_literal: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                # Git shows paths from the current folder if that is in the working tree.
                self._command(arguments, cwd),
                input=data,
                capture_output=True,
                cwd=cwd,
                # `check-ignore` refuses literal paths, and has no patterns.
                env={**self._environment(index), "GIT_LITERAL_PATHSPECS": str(int(is_literal))},
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CheckpointError(f"git {arguments[0]} failed: {error}") from error

    @contextlib.contextmanager
    def records(
        self, *arguments: str, folder: Path | None = None, index: str = ""
    ) -> Iterator[Iterator[bytes]]:
        """The records of a command, which end with a NUL byte; it is stopped with the context."""
        tree = folder or self._work_tree
        try:
            process = subprocess.Popen(
                self._command(arguments, tree),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=tree,
                env=self._environment(index),
            )
        except OSError as error:
            raise CheckpointError(f"git {arguments[0]} failed: {error}") from error
        with process:
            try:
                yield _split(process)
            except BaseException:
                process.kill()
                raise
            finally:
                if process.poll() is None and process.stdout is not None:
                    process.stdout.close()
        if process.returncode > 0:
            raise CheckpointError(f"git {arguments[0]} failed: exit code {process.returncode}")

    @contextlib.contextmanager
    def contents(self) -> Iterator[BlobReader]:
        """A reader of stored file contents."""
        with subprocess.Popen(
            self._command(("cat-file", "--batch"), self._work_tree),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._git_folder,
            env=self._environment(""),
        ) as process:
            try:
                yield BlobReader(process)
            finally:
                if process.stdin is not None:
                    process.stdin.close()

    def _command(self, arguments: Sequence[str], tree: Path) -> list[str]:
        return [self._program, f"--git-dir={self._git_folder}", f"--work-tree={tree}", *arguments]

    def _environment(self, index: str) -> dict[str, str]:
        environment = isolated_environment()
        if index:
            environment["GIT_INDEX_FILE"] = str(self._git_folder / index)
        return environment


class BlobReader:
    """Reads the contents of files by their IDs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, blob: str) -> bytes:
        """The content with this ID."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise CheckpointError("git cat-file has no pipes.")
        stdin.write(f"{blob}\n".encode())
        stdin.flush()
        head = stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise CheckpointError(f"The checkpoint is damaged: content {blob} is missing.")
        size = int(head[2])
        data = stdout.read(size + 1)
        if len(data) != size + 1:
            raise CheckpointError(f"The checkpoint is damaged: content {blob} is cut.")
        return data[:-1]


def _failure(arguments: Sequence[str], done: subprocess.CompletedProcess[bytes]) -> CheckpointError:
    reason = done.stderr.decode(errors="replace").strip()
    return CheckpointError(f"git {arguments[0]} failed: {reason or done.returncode}")


def _split(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    if process.stdout is None:
        return
    rest = b""
    while data := process.stdout.read1(READ_BYTES):  # type: ignore[attr-defined]
        *records, rest = (rest + data).split(b"\0")
        yield from records
