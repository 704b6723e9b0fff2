"""Who committed the lines of a file: git, asked without anything that a repository can configure.

Only committed blobs are read, never the working folder, and no setting of the repository can name a
program: filters, hooks, text converters and lazy fetches are off.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.git_process import find_git, isolated_environment
from hermes_agent.project.files import repository_root
from hermes_agent.sandbox.git_state import git_directory
from hermes_core.errors import UsageError
from hermes_state.calls.edits import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS: Final = 60.0
OFF: Final = (
    "core.fsmonitor=false", f"core.hooksPath={os.devnull}", "blame.ignoreRevsFile=",
    "log.showSignature=false", "core.pager=cat", f"core.attributesFile={os.devnull}",
    "diff.external=", "protocol.allow=never", "log.follow=false", "i18n.logOutputEncoding=UTF-8",
)  # fmt: skip
LOG_FORMAT: Final = "%x00%H%x00%at%x00%an%x00%s%x00"  # nothing in a commit contains a NUL
LOG_RECORD: Final = re.compile(
    rb"\0([0-9a-f]{40,64})\0(\d*)\0([^\0]*)\0([^\0]*)\0\0(?:\n([^\0]*)\0)?"
)


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


class CommittedFile:
    """A file in a repository."""

    def __init__(self, program: str, git_folder: Path, root: Path, path: str) -> None:
        self._program, self._git_folder, self.root, self.path = program, git_folder, root, path
        self.commits: dict[str, Commit] = {each.id: each for each in self._log()}

    @classmethod
    def find(cls, file: Path) -> CommittedFile | None:
        """The history of a file; None without git, a repository, or a commit with the file."""
        root, program = repository_root(file.parent), find_git()
        folder = git_directory(root / ".git")
        if program is None or folder is None:
            return None
        history = cls(program, folder, root, file.relative_to(root).as_posix())
        return history if history.commits else None

    def blame(self) -> list[BlamedLine]:
        """The lines of the last commit; changes of white space do not count."""
        output = self._run(
            "blame", "-w", "-M", "--no-textconv", "--porcelain", "HEAD", "--", self.path
        )
        return list(self._blamed(_text(output)))

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
        return lines_of(_text(self._run("cat-file", "blob", f"{commit.id}:{commit.path}")))

    def before(self, commit_id: str) -> list[Commit]:
        """The commits that changed the file before one, latest first."""
        commits = list(self.commits.values())
        ids = [commit.id for commit in commits]
        return commits[ids.index(commit_id) + 1 :] if commit_id in ids else []

    def _log(self) -> Iterator[Commit]:
        """The commits that changed the file, also under earlier names, latest first."""
        output = self._run(
            "log", "--follow", "-w", "--no-show-signature", "--no-ext-diff", "--no-textconv",
            "-z", "--name-only", f"--format={LOG_FORMAT}", "HEAD", "--", self.path,
        )  # fmt: skip
        for commit, at, author, summary, name in LOG_RECORD.findall(output):
            path = os.fsdecode(name) or self.path
            yield Commit(_text(commit), float(at or 0), _text(author), _text(summary), path)

    def _run(self, *arguments: str) -> bytes:
        settings = [part for setting in OFF for part in ("-c", setting)]
        environment = isolated_environment() | {
            "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
        }  # fmt: skip
        folders = (f"--git-dir={self._git_folder}", "--work-tree=/")
        try:
            done = subprocess.run(
                [self._program, *folders, *settings, *arguments],
                capture_output=True, check=False, timeout=SECONDS, cwd="/", env=environment,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"git needs more than {SECONDS:.0f} s for {self.path} in {self.root}."
            ) from None
        return done.stdout if done.returncode == 0 else b""


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
