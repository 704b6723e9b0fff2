"""Which conversation wrote the lines of a file.

The history has what each agent wrote, line by line; git tells which commit a line came with. A
line is an agent's if the agent added it between the previous commit of the file and that one, in
the same order as the lines beside it. Everything else is a person's.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_conversation.git_history import Commit, CommittedFile
from hermes_core.errors import UsageError
from hermes_core.messages import plain_text, preview
from hermes_state.calls.edits import digest, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_state.calls.repository import StoredEdit
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

MAX_BYTES: Final = 5_000_000
MIN_DISTINCT: Final = 8  # letters and digits of a line that needs no neighbours
MAX_CHECKED_COMMITS: Final = 30
MAX_COMPARED: Final = 8_000  # changed lines; of more, those that occur once are found
CLOCK_SECONDS: Final = 1.0  # git counts whole seconds


class FileLine(NamedTuple):
    """A line of a file, and the commit that it came with; None for one that is not committed."""

    number: int
    text: str
    commit: Commit | None
    place: int  # in the commit, or in the file


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
        if not file.is_file():
            raise UsageError(f"{file} is not a file.")
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"{file} is larger than {MAX_BYTES // 1_000_000} MB.")
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    if b"\0" in data[:8000]:
        raise UsageError(f"{file} is not a text file.")
    return [line.removesuffix("\r") for line in lines_of(data.decode("utf-8", "replace"))]


def origins_of(db: SessionDB, file: Path) -> FileOrigins:
    """Who wrote each line of a file."""
    texts = read_lines(file)
    history = CommittedFile.find(file)
    lines = _located(texts, history)
    names = [file.as_posix(), *(each.path for each in history.commits.values())] if history else []
    edits = [
        edit
        for edit in db.calls.edits_of(names or [file.as_posix()])
        if _is_of(edit, file, history)
    ]
    attribution = _Attribution(history, edits)
    here = attribution.owners(None, texts)
    owners: dict[str, dict[int, StoredEdit]] = {}
    origins = []
    for line in lines:
        commit = line.commit
        if commit is None or history is None:
            origins.append(LineOrigin(line, here.get(line.number)))
            continue
        if commit.id not in owners:
            owners[commit.id] = attribution.owners(commit, history.lines_at(commit))
        origins.append(LineOrigin(line, owners[commit.id].get(line.place)))
    return FileOrigins(file, origins, history is not None)


def _located(texts: list[str], history: CommittedFile | None) -> list[FileLine]:
    """The lines of the working folder with the commits that they came with."""
    blamed = history.blame() if history is not None else []
    if history is None or not blamed:
        return [FileLine(n, text, None, n) for n, text in enumerate(texts, 1)]
    now, then = [digest(text) for text in texts], [digest(each.text) for each in blamed]
    found = _same_lines(then, now)
    found |= _moved(now, then, found)
    lines = []
    for place, text in enumerate(texts):
        each = blamed[found[place]] if place in found else None
        commit = history.commits.get(each.commit) if each is not None else None
        lines.append(FileLine(place + 1, text, commit, each.place if each else place + 1))
    return lines


def _same_lines(then: list[bytes], now: list[bytes]) -> dict[int, int]:
    """The lines of the last commit that are still there: their places now, and then."""
    length = min(len(then), len(now))
    start = next((at for at in range(length) if then[at] != now[at]), length)
    rest = length - start
    end = next((at for at in range(rest) if then[-1 - at] != now[-1 - at]), rest)
    found = {place: place for place in range(start)}
    found |= {len(now) - at: len(then) - at for at in range(1, end + 1)}
    before, after = then[start : len(then) - end], now[start : len(now) - end]
    if len(before) + len(after) <= MAX_COMPARED:
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        for first, other, size in blocks:
            found |= {start + other + at: start + first + at for at in range(size)}
    return found


def _moved(now: list[bytes], then: list[bytes], found: dict[int, int]) -> dict[int, int]:
    """Lines that stand elsewhere than in the last commit, if they occur once in both."""
    used, numbers, numbers_then = set(found.values()), Counter(now), Counter(then)
    places = {line: place for place, line in enumerate(then) if numbers_then[line] == 1}
    return {
        place: places[line]
        for place, line in enumerate(now)
        if line
        and place not in found
        and numbers[line] == 1
        and line in places
        and places[line] not in used
    }


class _Attribution:
    """Finds the edits that wrote the lines of a file, commit by commit."""

    def __init__(self, history: CommittedFile | None, edits: Sequence[StoredEdit]) -> None:
        self._history = history
        self._edits = sorted(edits, key=lambda each: each.at, reverse=True)
        self._contents: dict[str, list[bytes]] = {}

    def owners(self, commit: Commit | None, texts: Sequence[str]) -> dict[int, StoredEdit]:
        """The edit that wrote each line, from 1, of the text of a commit: the latest that could.

        Without a commit, the text is that of the working folder.
        """
        text = _Text(texts)
        found: dict[int, StoredEdit] = {}
        removed: dict[bytes, float] = {}  # when an agent removed a line last
        until = float("inf") if commit is None else commit.at + CLOCK_SECONDS
        earlier = self._before(commit)
        for edit in (each for each in self._edits if each.at <= until):
            for place in text.written_by(edit):
                line = text.digests[place]
                is_gone = text.is_distinct[place] and edit.at < removed.get(line, 0.0)
                if place + 1 in found or is_gone:
                    continue
                if self._is_new(line, edit, earlier):
                    found[place + 1] = edit
            for gone in edit.removed:
                removed.setdefault(gone, edit.at)
        return found

    def _before(self, commit: Commit | None) -> list[Commit]:
        """The commits of the file before one, or before what is not committed; latest first."""
        if self._history is None:
            return []
        return (
            list(self._history.commits.values())
            if commit is None
            else self._history.before(commit.id)
        )

    def _is_new(self, line: bytes, edit: StoredEdit, earlier: list[Commit]) -> bool:
        """Whether no commit after the edit had the line already."""
        between = list(itertools.takewhile(lambda commit: commit.at >= edit.at, earlier))
        if not between:
            return True
        if len(between) > MAX_CHECKED_COMMITS or not line:
            return False
        return all(line not in self._content(commit) for commit in between)

    def _content(self, commit: Commit) -> list[bytes]:
        if commit.id not in self._contents and self._history is not None:
            self._contents[commit.id] = list(map(digest, self._history.lines_at(commit)))
        return self._contents[commit.id]


class _Text:
    """A text that edits may have written."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.digests = list(map(digest, texts))
        self.is_distinct = [sum(map(str.isalnum, text)) >= MIN_DISTINCT for text in texts]
        self._places: dict[bytes, list[int]] = defaultdict(list)
        for place, line in enumerate(self.digests):
            self._places[line].append(place)

    def written_by(self, edit: StoredEdit) -> list[int]:
        """The lines that an edit wrote: those that occur once, and what stands beside them."""
        pairs = dict(self._anchors(edit))
        used = set(pairs.values())
        queue = list(pairs.items())
        while queue:
            place, other = queue.pop()
            for step in (-1, 1):
                near, next_other = place + step, other + step
                if near in pairs or next_other in used:
                    continue
                if not (0 <= near < len(self.digests) and 0 <= next_other < len(edit.lines)):
                    continue
                if self.digests[near] == edit.lines[next_other].digest:
                    pairs[near] = next_other
                    used.add(next_other)
                    queue.append((near, next_other))
        return [place for place, other in pairs.items() if edit.lines[other].is_new]

    def _anchors(self, edit: StoredEdit) -> Iterator[tuple[int, int]]:
        """Lines that are long enough to be recognized, and occur once in the text and the edit."""
        numbers = Counter(line.digest for line in edit.lines)
        for other, line in enumerate(edit.lines):
            places = self._places.get(line.digest, [])
            is_single = len(places) == 1 and numbers[line.digest] == 1
            if is_single and self.is_distinct[places[0]]:
                yield places[0], other


def _is_of(edit: StoredEdit, file: Path, history: CommittedFile | None) -> bool:
    """Whether an edit was of this file: here, or in a copy of the repository elsewhere."""
    if history is None:
        return edit.path == file.as_posix()
    root = history.root.as_posix()
    names = {history.path, *(commit.path for commit in history.commits.values())}
    if edit.path.startswith(f"{root}/"):
        return edit.path[len(root) + 1 :] in names
    return any(edit.path.endswith(f"/{history.root.name}/{name}") for name in names)


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
