"""What tool calls wrote into files: the lines that each call added, of all agents.

Lines are kept as digests without their white space, in order.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_state.calls.history import ToolCall

DIGEST_BYTES: Final = 8
MAX_LINES: Final = 20_000  # of one edit
MAX_COMPARED: Final = 4_000  # lines; longer texts are compared as sets
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


class FileEdit(NamedTuple):
    """What a call did to a file: the digests of the lines that it added, in order."""

    path: str
    added: tuple[bytes, ...]
    removed: frozenset[bytes]


def digest(line: str) -> bytes:
    """The digest of a line without its white space; empty for a blank line."""
    text = "".join(line.split())
    if not text:
        return b""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()


def digests(text: str) -> tuple[bytes, ...]:
    """The digests of the lines of a text."""
    return tuple(itertools.islice(map(digest, text.splitlines()), MAX_LINES))


class KnownFiles:
    """What is known of files while the calls of a session are read: their lines before an edit."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[bytes, ...]] = {}

    def edits(self, call: ToolCall) -> list[FileEdit]:
        """The edits of a call that did not fail; what it read is noted."""
        path = _text(call.arguments, PATH_KEYS)
        if READING_TOOLS.search(call.name):
            if path:
                self._lines[path] = _shown_lines(call.result)
            return []
        if call.result_id is None or _has_failed(call.result):
            return []
        return [edit for edit in self._changes(call, path) if edit.added or edit.removed]

    def _changes(self, call: ToolCall, path: str) -> Iterator[FileEdit]:
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
            added = tuple(line for change in changes for line in change[0])
            removed = frozenset(line for change in changes for line in change[1])
            yield FileEdit(path, added, removed)
        elif path and content:
            lines = digests(content)
            before = self._lines.get(path, ())
            self._lines[path] = lines
            yield FileEdit(path, *added_lines(before, lines))
        else:
            for text in _texts(arguments, PATCH_KEYS):
                yield from _unified(text, path)


def added_lines(
    before: tuple[bytes, ...], after: tuple[bytes, ...]
) -> tuple[tuple[bytes, ...], frozenset[bytes]]:
    """The lines that are new in a text, in order, and those that are gone."""
    gone = frozenset(before) - frozenset(after)
    if not before:
        return after, gone
    if len(before) + len(after) > MAX_COMPARED:
        known = frozenset(before)
        return tuple(line for line in after if line not in known), gone
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added = [
        line
        for kind, _, _, start, stop in matcher.get_opcodes()
        if kind in ("insert", "replace")
        for line in after[start:stop]
    ]
    return tuple(added), gone


def _replaced(part: Mapping[str, Any]) -> list[tuple[tuple[bytes, ...], frozenset[bytes]]]:
    """The lines that a replacement adds and removes; none if it is no replacement."""
    new = _text(part, NEW_KEYS, default=None)
    if new is None:
        return []
    return [added_lines(digests(_text(part, OLD_KEYS)), digests(new))]


def _patched(text: str) -> Iterator[FileEdit]:
    """The files of a patch in the format of Codex."""
    path, added, removed = "", list[bytes](), set[bytes]()
    for line in text[text.index(PATCH_BEGIN) :].splitlines():
        header, move = PATCH_FILE.match(line), PATCH_MOVE.match(line)
        if header or line.startswith("*** End Patch"):
            if path:
                yield FileEdit(path, tuple(added), frozenset(removed))
            path, added, removed = header[2].strip() if header else "", [], set()
        elif move:
            path = move[1].strip()
        elif line.startswith("+"):
            added.append(digest(line[1:]))
        elif line.startswith("-"):
            removed.add(digest(line[1:]))


def _unified(text: str, path: str) -> Iterator[FileEdit]:
    """The files of a unified diff."""
    added: list[bytes] = []
    removed: set[bytes] = set()
    is_diff = False
    for line in text.splitlines():
        header = DIFF_FILE.match(line)
        if header:
            if is_diff and path:
                yield FileEdit(path, tuple(added), frozenset(removed))
            path, added, removed, is_diff = header[1].strip(), [], set(), True
        elif is_diff and line.startswith("+"):
            added.append(digest(line[1:]))
        elif is_diff and line.startswith("-") and not line.startswith("---"):
            removed.add(digest(line[1:]))
    if is_diff and path:
        yield FileEdit(path, tuple(added), frozenset(removed))


def _written_by_shell(script: str) -> Iterator[FileEdit]:
    """The files that a shell script writes from a text in itself: `cat > FILE <<EOF`."""
    for found in HEREDOC.finditer(script) if "<<" in script else ():
        path = found["target"] or found["path"]
        if path:
            yield FileEdit(path.strip("'\""), digests(found["text"]), frozenset())


def _shown_lines(result: str) -> tuple[bytes, ...]:
    """The lines of a file as a tool showed them, without their numbers."""
    return digests("\n".join(LINE_NUMBER.sub("", line, count=1) for line in result.splitlines()))


def _has_failed(result: str) -> bool:
    """Whether the result of an edit is an error."""
    start = result.lstrip()[:400]
    if start.startswith("{"):
        return re.search(r'"error":\s*(?!null|""|false|\[\]|\{\})', result) is not None
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
