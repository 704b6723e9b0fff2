"""Who committed the lines of a file: git, asked without anything that a repository can configure.

Only committed blobs are read, never the working folder, and no setting of the repository can name a
program: filters, hooks, text converters and lazy fetches are off.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.git_process import find_git, isolated_environment
from hermes_agent.project.files import repository_root
from hermes_agent.sandbox.git_state import git_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS: Final = 60.0
OFF: Final = (
    "core.fsmonitor=false", f"core.hooksPath={os.devnull}", "blame.ignoreRevsFile=",
    "log.showSignature=false", "core.pager=cat", f"core.attributesFile={os.devnull}",
    "diff.external=", "protocol.allow=never", "log.follow=false",
)  # fmt: skip


class Commit(NamedTuple):
    """A commit that changed a file."""

    id: str
    at: float  # when it was written first: a rebase keeps this time
    author: str
    summary: str
    path: str  # of the file in it


class BlamedLine(NamedTuple):
    """A committed line: the commit that added it, and its place there."""

    commit: str
    place: int
    path: str
    text: str


class FileHistory:
    """A file in a repository."""

    def __init__(self, program: str, git_folder: Path, root: Path, path: str) -> None:
        self._program, self._git_folder, self.root, self.path = program, git_folder, root, path
        self.commits: dict[str, Commit] = {each.id: each for each in self._log()}

    @classmethod
    def find(cls, file: Path) -> FileHistory | None:
        """The history of a file; None without git, a repository, or a commit with the file."""
        root, program = repository_root(file.parent), find_git()
        folder = git_directory(root / ".git")
        if program is None or folder is None:
            return None
        history = cls(program, folder, root, file.relative_to(root).as_posix())
        return history if history.commits else None

    def blame(self) -> list[BlamedLine]:
        """The lines of the last commit; changes of white space do not count."""
        output = self._run("blame", "-w", "-M", "--no-textconv", "--porcelain", "HEAD", self.path)
        return list(self._blamed(output))

    def _blamed(self, output: str) -> Iterator[BlamedLine]:
        paths: dict[str, str] = {}
        commit, place = "", 0
        for line in output.split("\n"):
            if line.startswith("\t"):
                yield BlamedLine(commit, place, paths.get(commit, self.path), line[1:])
            elif line.startswith("filename "):
                paths[commit] = line.partition(" ")[2]
            else:
                words = line.split(" ")
                if len(words) in (3, 4) and len(words[0]) >= 40 and words[1].isdecimal():
                    commit, place = words[0], int(words[1])

    def lines_at(self, commit: Commit) -> list[str]:
        """The lines of the file in a commit."""
        return self._run("cat-file", "blob", f"{commit.id}:{commit.path}").splitlines()

    def before(self, commit_id: str) -> list[Commit]:
        """The commits that changed the file before one, latest first."""
        commits = list(self.commits.values())
        ids = [commit.id for commit in commits]
        return commits[ids.index(commit_id) + 1 :] if commit_id in ids else []

    def _log(self) -> Iterator[Commit]:
        """The commits that changed the file, also under earlier names, latest first."""
        form = "--format=%x01%H%x00%at%x00%an%x00%s"
        output = self._run(
            "log", "--follow", "-w", "--no-show-signature", "--no-ext-diff", "--no-textconv",
            "--name-only", form, "HEAD", "--", self.path,
        )  # fmt: skip
        for record in output.split("\1")[1:]:
            head, _, names = record.partition("\n")
            commit, at, author, summary = head.split("\0", 3)
            path = names.strip().split("\n")[-1] or self.path
            yield Commit(commit, float(at), author, summary, path)

    def _run(self, *arguments: str) -> str:
        settings = [part for setting in OFF for part in ("-c", setting)]
        environment = isolated_environment() | {
            "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
        }  # fmt: skip
        done = subprocess.run(
            [self._program, f"--git-dir={self._git_folder}", "--work-tree=/", "-c",
             "core.quotePath=false",
             *settings, *arguments],
            capture_output=True, check=False, timeout=SECONDS, cwd="/", env=environment,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
