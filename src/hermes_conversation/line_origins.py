"""Which conversation wrote the lines of a file.

The history has what each agent wrote, line by line; git tells which commit a line came with. A
line is an agent's if the agent added it between the previous commit of the file and that one, in
the same order as the lines beside it. Everything else is a person's.
"""

from __future__ import annotations

import posixpath
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_conversation.git_history import BlamedLine, Commit, FileHistory
from hermes_core.errors import UsageError
from hermes_core.messages import plain_text, preview
from hermes_state.calls.edits import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_state.calls.repository import StoredEdit
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

MAX_BYTES: Final = 5_000_000
MIN_DISTINCT: Final = 8  # letters and digits of a line that is recognized by itself
MAX_CHECKED_COMMITS: Final = 30
CLOCK_SECONDS: Final = 1.0  # git counts whole seconds


class FileLine(NamedTuple):
    """A line of a file, and the commit that it came with; None for one that is not committed."""

    number: int
    text: str
    commit: Commit | None
    place: int  # in the commit, or in the file

    @property
    def digest(self) -> bytes:
        """The digest of the line without white space."""
        return digest(self.text)

    @property
    def is_distinct(self) -> bool:
        """Whether it is long enough to be recognized without its neighbours."""
        return sum(map(str.isalnum, self.text)) >= MIN_DISTINCT


class LineOrigin(NamedTuple):
    """Who wrote a line: an edit of an agent, else the author of a commit."""

    line: FileLine
    edit: StoredEdit | None


class FileOrigins(NamedTuple):
    """The origins of all lines of a file."""

    path: Path
    lines: list[LineOrigin]
    has_git: bool


class WrittenBy(NamedTuple):
    """The turn that wrote a line."""

    session_id: str
    title: str
    source: str
    at: float
    message_id: int
    prompt_id: int | None
    prompt: str

    def as_fields(self) -> JsonObject:
        """The turn as JSON."""
        return {
            "session_id": self.session_id,
            "title": self.title or None,
            "agent": self.source,
            "at": self.at,
            "message_id": self.message_id,
            "prompt_message_id": self.prompt_id,
            "prompt": self.prompt,
        }


def read_lines(file: Path) -> list[str]:
    """The lines of a file; UsageError if it is not a text."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"{file} is larger than {MAX_BYTES // 1_000_000} MB.")
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    if b"\0" in data[:8000]:
        raise UsageError(f"{file} is not a text file.")
    return data.decode("utf-8", "replace").splitlines()


def origins_of(db: SessionDB, file: Path) -> FileOrigins:
    """Who wrote each line of a file."""
    texts = read_lines(file)
    history = FileHistory.find(file)
    lines = _located(texts, history)
    names = [file.as_posix(), *(each.path for each in history.commits.values())] if history else []
    edits = [
        edit
        for edit in db.calls.edits_of(names or [file.as_posix()])
        if _is_of(db, edit, file, history)
    ]
    owners = _Attribution(history, lines).owners(edits)
    return FileOrigins(
        file, [LineOrigin(line, owners.get(line.number)) for line in lines], history is not None
    )


def _located(texts: list[str], history: FileHistory | None) -> list[FileLine]:
    """The lines of the working folder with the commits that they came with."""
    blamed = history.blame() if history is not None else []
    if history is None or not blamed:
        return [FileLine(n, text, None, n) for n, text in enumerate(texts, 1)]
    now, then = [digest(text) for text in texts], [digest(each.text) for each in blamed]
    found: dict[int, BlamedLine] = {}
    for block in SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            found[block.b + offset] = blamed[block.a + offset]
    moved = _moved(now, then, found, blamed)
    return [
        FileLine(
            place + 1,
            text,
            history.commits.get(each.commit) if (each := (found | moved).get(place)) else None,
            each.place if each else place + 1,
        )
        for place, text in enumerate(texts)
    ]


def _moved(
    now: list[bytes], then: list[bytes], found: dict[int, BlamedLine], blamed: list[BlamedLine]
) -> dict[int, BlamedLine]:
    """Lines that stand elsewhere than in the last commit, if they occur once in both."""
    used = {id(each) for each in found.values()}
    return {
        place: blamed[then.index(line)]
        for place, line in enumerate(now)
        if place not in found
        and line
        and now.count(line) == 1
        and then.count(line) == 1
        and id(blamed[then.index(line)]) not in used
    }


class _Attribution:
    """Finds the edits that wrote the lines of a file."""

    def __init__(self, history: FileHistory | None, lines: list[FileLine]) -> None:
        self._history, self._lines = history, lines
        self._digests = [line.digest for line in lines]
        self._earlier: dict[str, list[Commit]] = {}
        self._contents: dict[str, frozenset[bytes]] = {}

    def owners(self, edits: Sequence[StoredEdit]) -> dict[int, StoredEdit]:
        """The edit that wrote each line, by the number of the line: the latest that could."""
        found: dict[int, StoredEdit] = {}
        removed: dict[bytes, float] = {}  # when an agent removed a line last
        for edit in sorted(edits, key=lambda each: each.at, reverse=True):
            for line in self._matched(edit):
                is_gone = edit.at < removed.get(line.digest, 0.0) <= _until(line)
                if line.number not in found and not is_gone and self._is_new(line, edit):
                    found[line.number] = edit
            for gone in edit.removed:
                removed.setdefault(gone, edit.at)
        return found

    def _matched(self, edit: StoredEdit) -> Iterator[FileLine]:
        """The lines that an edit wrote, in its order; short ones beside longer ones only."""
        digests = [line.digest for line in edit.lines]
        matcher = SequenceMatcher(None, self._digests, digests, autojunk=False)
        for start, other, size in matcher.get_matching_blocks():
            run = self._lines[start : start + size]
            if any(line.is_distinct for line in run):
                flags = edit.lines[other : other + size]
                yield from (line for line, flag in zip(run, flags, strict=True) if flag.is_new)

    def _is_new(self, line: FileLine, edit: StoredEdit) -> bool:
        """Whether an edit may have written a line: no commit between them had it already."""
        if edit.at > _until(line):
            return False
        earlier = self._before(line.commit)
        if not earlier or edit.at > earlier[0].at:
            return True
        between = [commit for commit in earlier if commit.at >= edit.at]
        if len(between) > MAX_CHECKED_COMMITS or not line.digest:
            return False
        return all(line.digest not in self._content(commit) for commit in between)

    def _before(self, commit: Commit | None) -> list[Commit]:
        """The commits of the file before one, or before what is not committed."""
        if self._history is None:
            return []
        if commit is None:
            return list(self._history.commits.values())
        if commit.id not in self._earlier:
            self._earlier[commit.id] = self._history.before(commit.id)
        return self._earlier[commit.id]

    def _content(self, commit: Commit) -> frozenset[bytes]:
        if commit.id not in self._contents and self._history is not None:
            lines = self._history.lines_at(commit)
            self._contents[commit.id] = frozenset(map(digest, lines))
        return self._contents[commit.id]


def _until(line: FileLine) -> float:
    """The latest time at which a line can have been written."""
    return float("inf") if line.commit is None else line.commit.at + CLOCK_SECONDS


def _is_of(db: SessionDB, edit: StoredEdit, file: Path, history: FileHistory | None) -> bool:
    """Whether an edit was of this file: here, or in a copy of the repository elsewhere."""
    row = db.sessions.find(edit.session_id)
    folder = (row.cwd if row else None) or "/"
    path = posixpath.normpath(posixpath.join(folder, edit.path.replace("\\", "/")))
    if history is None:
        return path == file.as_posix()
    root = history.root.as_posix()
    names = {history.path, *(commit.path for commit in history.commits.values())}
    if path.startswith(f"{root}/"):
        return path[len(root) + 1 :] in names
    return any(path.endswith(f"/{history.root.name}/{name}") for name in names)


def written_by(db: SessionDB, edit: StoredEdit) -> WrittenBy:
    """The conversation and the prompt that led to an edit."""
    row: SessionRow | None = db.sessions.find(edit.session_id)
    prompt_id, content = db.calls.prompt_before(edit.session_id, edit.message_id) or (None, "")
    return WrittenBy(
        edit.session_id,
        (row.title if row else "") or "",
        row.source if row else "",
        edit.at,
        edit.message_id,
        prompt_id,
        preview(plain_text(content), 200),
    )
