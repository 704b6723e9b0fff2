"""What tool calls wrote into files: the lines that each call added, of all agents.

Lines are kept as digests without their white space, in order.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
import re
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_state.calls.history import RecordedCall

DIGEST_BYTES: Final = 8
MAX_LINES: Final = 20_000  # of one edit
MAX_COMPARED: Final = 4_000  # lines; longer texts are compared as sets
NEIGHBOURS: Final = 2  # lines before and after new ones
PATH_KEYS: Final = ("file_path", "path", "filePath", "notebook_path", "filename", "target_file")
CONTENT_KEYS: Final = ("content", "file_text", "contents", "new_source", "fileText")
OLD_KEYS: Final = ("old_string", "oldString", "old_str", "oldText", "old_text")
NEW_KEYS: Final = ("new_string", "newString", "new_str", "newText", "new_text")
SCRIPT_KEYS: Final = ("command", "cmd", "script")
PATCH_KEYS: Final = ("patch", "input", "patchText", "patch_text", "diff", *SCRIPT_KEYS)
WRITING_TOOLS: Final = re.compile(
    r"(?:^|[_.:/-])(?:write|edit|multi_?edit|patch|create|replace|str_replace\w*|insert|text_editor"
    r"|apply_?patch|notebook_?edit|write_?file|create_?file|edit_?file|apply_?diff)$",
    re.IGNORECASE,
)
READING_TOOLS: Final = re.compile(r"(?:^|[_.:/-])(?:read|view|cat|read_?file)$", re.IGNORECASE)
PATCH_BEGIN: Final = "*** Begin Patch"
PATCH_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
PATCH_MOVE: Final = re.compile(r"\*\*\* Move to: (.+)")
DIFF_FILE: Final = re.compile(r"\+\+\+ (?:b/)?([^\t\n]+)")
HEREDOC: Final = re.compile(
    r"\b(?:cat|tee)\s*(?:-a\s+|>>?\s*)?(?P<path>[^\s<>|&;]+)?\s*<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)"
    r"(?P=quote)\s*(?:>>?\s*(?P<target>[^\s<>|&;]+))?[^\n]*\n(?P<text>.*?)^\s*(?P=end)\s*$",
    re.DOTALL | re.MULTILINE,
)
LINE_NUMBER: Final = re.compile(r"^\s*\d+(?:\t|→|\||: )")
FAILED: Final = re.compile(
    r"\s*(?:<tool_use_error>|error\b|failed\b|.{0,80}\b(?:not found|no such file|did not match)"
    r"|no changes\b)",
    re.IGNORECASE,
)


class EditedLine(NamedTuple):
    """A line that a call wrote, by its digest; those beside new lines tell where they are."""

    digest: bytes
    is_new: bool


class FileEdit(NamedTuple):
    """What a call did to a file: new lines with their neighbours in order, and what is gone."""

    path: str
    lines: tuple[EditedLine, ...]
    removed: frozenset[bytes]


GAP: Final = EditedLine(b"\xff" * DIGEST_BYTES, is_new=False)


def digest(line: str) -> bytes:
    """The digest of a line without its white space; empty for a blank line."""
    text = "".join(line.split())
    if not text:
        return b""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()


def lines_of(text: str) -> list[str]:
    """The lines of a text as git and editors count them: only a line feed ends one."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def digests(text: str) -> tuple[bytes, ...]:
    """The digests of the lines of a text."""
    return tuple(itertools.islice(map(digest, lines_of(text)), MAX_LINES))


class KnownFiles:
    """What is known of files while the calls of a session are read: their lines before an edit."""

    def __init__(self, folder: str) -> None:
        self._folder = folder or "/"
        self._lines: dict[str, tuple[bytes, ...]] = {}
        self.has_guessed = False  # a file was written that was not read before

    def edits(self, call: RecordedCall) -> list[FileEdit]:
        """The edits of a call that did not fail, with absolute paths; what it read is noted."""
        path = self._absolute(_text(call.arguments, PATH_KEYS))
        if READING_TOOLS.search(call.name):
            if path:
                self._lines[path] = _shown_lines(call.result)
            return []
        if call.result_id is None or _has_failed(call.result):
            return []
        found = [edit for edit in self._changes(call, path) if edit.lines or edit.removed]
        return [edit._replace(path=self._absolute(edit.path)) for edit in found]

    def _absolute(self, path: str) -> str:
        slashed = path.replace("\\", "/")
        return posixpath.normpath(posixpath.join(self._folder, slashed)) if path else ""

    def _changes(self, call: RecordedCall, path: str) -> Iterator[FileEdit]:
        arguments = call.arguments
        patch = next((text for text in _texts(arguments, PATCH_KEYS) if PATCH_BEGIN in text), "")
        if patch:
            yield from _patched(patch)
            return
        for script in _texts(arguments, SCRIPT_KEYS):
            yield from _written_by_shell(script)
        if not WRITING_TOOLS.search(call.name):
            return
        edits = arguments.get("edits")
        parts = [arguments, *(edits if isinstance(edits, list) else [])]
        changes = [change for part in parts if isinstance(part, dict) for change in _replaced(part)]
        content = _text(arguments, CONTENT_KEYS)
        if path and changes:
            lines = tuple(itertools.chain.from_iterable((*each.lines, GAP) for each in changes))
            removed = frozenset[bytes]().union(*(each.removed for each in changes))
            yield FileEdit(path, lines, removed)
        elif path and content:
            self.has_guessed = self.has_guessed or path not in self._lines
            before, after = self._lines.get(path, ()), digests(content)
            self._lines[path] = after
            yield changed(path, before, after)
        else:
            for text in _texts(arguments, PATCH_KEYS):
                yield from _unified(text)


def changed(path: str, before: Sequence[bytes], after: Sequence[bytes]) -> FileEdit:
    """The edit from one text to another. A line that only moved is not new."""
    if len(before) + len(after) > MAX_COMPARED:
        known = frozenset(before)
        flags = [line not in known for line in after]
        return FileEdit(path, _with_neighbours(after, flags), known - frozenset(after))
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone = Counter(
        line for kind, low, high, _, _ in codes if kind != "equal" for line in before[low:high]
    )
    flags = [False] * len(after)
    for kind, _, _, low, high in codes:
        for place in range(low, high if kind != "equal" else low):
            flags[place] = not gone[after[place]]
            gone[after[place]] -= not flags[place]
    return FileEdit(path, _with_neighbours(after, flags), frozenset(+gone))


def _with_neighbours(lines: Sequence[bytes], flags: Sequence[bool]) -> tuple[EditedLine, ...]:
    """New lines with those beside them; a gap stands for the others."""
    kept = {
        near
        for place, is_new in enumerate(flags)
        if is_new
        for near in range(place - NEIGHBOURS, place + NEIGHBOURS + 1)
    }
    found: list[EditedLine] = []
    last = -1
    for place in sorted(kept & set(range(len(lines)))):
        if found and place != last + 1:
            found.append(GAP)
        found.append(EditedLine(lines[place], flags[place]))
        last = place
    return tuple(found)


def _replaced(part: Mapping[str, Any]) -> list[FileEdit]:
    """What a replacement changes; nothing for other calls."""
    new = _text(part, NEW_KEYS, default=None)
    if new is None:
        return []
    return [changed("", digests(_text(part, OLD_KEYS)), digests(new))]


class _Hunks:
    """The lines of one file in a patch."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._before: list[bytes] = []
        self._after: list[bytes] = []
        self._edits: list[FileEdit] = []

    def add(self, line: str) -> None:
        """Take a line of a patch."""
        if line.startswith("@@"):
            self._end()
        elif line.startswith(("+", "-", " ")):
            if line[0] != "+":
                self._before.append(digest(line[1:]))
            if line[0] != "-":
                self._after.append(digest(line[1:]))

    def _end(self) -> None:
        self._edits.append(changed(self.path, self._before, self._after))
        self._before, self._after = [], []

    def edit(self) -> FileEdit:
        """All hunks as one edit."""
        self._end()
        lines = itertools.chain.from_iterable((*each.lines, GAP) for each in self._edits)
        removed = frozenset[bytes]().union(*(each.removed for each in self._edits))
        return FileEdit(self.path, tuple(lines), removed)


def _patched(text: str) -> Iterator[FileEdit]:
    """The files of a patch in the format of Codex."""
    hunks: _Hunks | None = None
    for line in lines_of(text[text.index(PATCH_BEGIN) :]):
        header, move = PATCH_FILE.match(line), PATCH_MOVE.match(line)
        if header or line.startswith("*** End Patch"):
            if hunks is not None:
                yield hunks.edit()
            hunks = _Hunks(header[2].strip()) if header else None
        elif hunks is not None and move:
            hunks.path = move[1].strip()
        elif hunks is not None:
            hunks.add(line)


def _unified(text: str) -> Iterator[FileEdit]:
    """The files of a unified diff."""
    hunks: _Hunks | None = None
    for line in lines_of(text):
        header = DIFF_FILE.match(line)
        if header:
            if hunks is not None:
                yield hunks.edit()
            hunks = _Hunks(header[1].strip())
        elif hunks is not None and not line.startswith(("--- ", "diff ")):
            hunks.add(line)
    if hunks is not None:
        yield hunks.edit()


def _written_by_shell(script: str) -> Iterator[FileEdit]:
    """The files that a shell script writes from a text in itself: `cat > FILE <<EOF`."""
    for found in HEREDOC.finditer(script) if "<<" in script else ():
        path = found.group("target") or found.group("path")
        if path:
            yield changed(path.strip("'\""), (), digests(found.group("text")))


def _shown_lines(result: str) -> tuple[bytes, ...]:
    """The lines of a file as a tool showed them, without their numbers."""
    return digests("\n".join(LINE_NUMBER.sub("", line, count=1) for line in lines_of(result)))


def _has_failed(result: str) -> bool:
    """Whether the result of an edit is an error."""
    start = result.lstrip()[:400]
    if start.startswith("{"):
        return re.search(r'"error":(?!\s*(?:null|""|false|\[\]|\{\}))', result) is not None
    return FAILED.match(start) is not None


def _texts(arguments: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    found = (arguments.get(name) for name in names)
    return [
        text if isinstance(text, str) else " ".join(map(str, text))
        for text in found
        if isinstance(text, (str, list))
    ]


def _text(arguments: Mapping[str, Any], names: tuple[str, ...], default: Any = "") -> Any:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return "\n".join(value)
    return default


def base_name(path: str) -> str:
    """The name of a file by which its edits are found."""
    return posixpath.basename(path.replace("\\", "/")).casefold()
