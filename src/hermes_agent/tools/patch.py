"""`patch`: replace pieces of a file by others, found by their text."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.tools import files
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    failure,
    flag,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_agent.tools.loose_match import find_loosely, reindented, without_line_numbers
from hermes_agent.tools.text_diff import describe_difference, split_lines, unified_diff
from hermes_agent.tools.text_encoding import displayable_text

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.files import LimitsFiles, SeenFiles
    from hermes_agent.tools.text_encoding import TextFile
    from hermes_core.json_values import JsonData, JsonObject

MAX_DIFF_CHARACTERS = 500_000
MAX_COMPARED_LINES = 5_000
MAX_LISTED_MATCHES = 10
MAX_EDITS = 100


def patch_tool(limits: LimitsFiles, seen: SeenFiles) -> Tool:
    """The tool."""
    return Tool(
        "patch",
        "Replace old_string (without line numbers), which must occur exactly once unless "
        "replace_all; or several with edits.",
        schema(
            "path",
            path=parameter("string"),
            old_string=parameter("string"),
            new_string=parameter("string"),
            replace_all=parameter("boolean"),
            edits=parameter(
                "array", "of {old_string, new_string, replace_all}", items={"type": "object"}
            ),
        ),
        reporting_errors(lambda arguments, context: _patch(limits, seen, arguments, context)),
    )


class Replacement(NamedTuple):
    """A change of a file that can be carried out."""

    path: Path
    file: TextFile
    changed: str
    matches: int
    differences: tuple[str, ...]  # between what was given and what was found


class EditError(ToolError):
    """An edit that cannot be carried out, with what helps to write it right."""

    def __init__(self, message: str, **facts: JsonData) -> None:
        super().__init__(message)
        self.facts = facts


def _patch(
    limits: LimitsFiles, seen: SeenFiles, arguments: JsonObject, context: ToolContext
) -> str:
    path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
    try:
        replacement = plan_replacement(arguments, path)
    except EditError as error:
        return failure(str(error), **error.facts)
    path, file, changed, count, differences = replacement
    data = file.encoded(changed)
    context.before_edit(path)
    replaced = files.replace_file(path, data)
    seen.note_edit(path, file.encoded(file.text), data)
    facts: dict[str, JsonData] = files.notes_of(replaced)
    if file.name:
        facts["encoding"] = file.name
    if differences:
        facts["not_exact"] = "; ".join(differences)
    return success(diff=unified_diff(file.text, changed, path.name), replaced=count, **facts)


def plan_replacement(arguments: JsonObject, path: Path) -> Replacement:
    """The change of a file that a call asks for: all its edits, one after the other."""
    edits = _edits(arguments)
    file = files.load(path)
    content, count = file.text, 0
    differences: list[str] = []
    for number, edit in enumerate(edits, 1):
        try:
            content, matches = _edited(content, edit, differences)
        except ToolError as error:
            if len(edits) == 1:
                raise
            facts = error.facts if isinstance(error, EditError) else {}
            raise EditError(f"Edit {number}: {error} Nothing was changed.", **facts) from None
        count += matches
    return Replacement(path, file, content, count, tuple(differences))


def _edits(arguments: JsonObject) -> list[JsonObject]:
    """The edits of a call; one may be given without a list."""
    given = arguments.get("edits") or []
    if not isinstance(given, list) or not all(isinstance(edit, dict) for edit in given):
        raise ToolError("`edits` must be a list of objects.")
    edits = [edit for edit in given if isinstance(edit, dict)]
    if len(edits) > MAX_EDITS:
        raise ToolError(f"At most {MAX_EDITS} edits in one call.")
    is_single = arguments.get("old_string") is not None
    return [arguments, *edits] if is_single or not edits else edits


def _edited(content: str, edit: JsonObject, differences: list[str]) -> tuple[str, int]:
    """A text after one edit, and how often it was made."""
    given, new = text(edit, "old_string"), text(edit, "new_string")
    is_for_all = flag(edit, "replace_all")
    if not given:
        raise ToolError("`old_string` is empty; use write_file for a new file.")
    if given == new:
        raise ToolError("`old_string` and `new_string` are the same.")
    old, exact_new = _with_line_ends(content, given, new)
    count = content.count(old)
    if count > 1 and not is_for_all:
        raise EditError(
            f"`old_string` occurs {count} times; give more surrounding text, or set replace_all.",
            lines=_line_numbers(content, old),
        )
    if count:
        return content.replace(old, exact_new), count
    return _edited_loosely(content, given, new, differences, is_for_all=is_for_all)


def _edited_loosely(
    content: str, given: str, new: str, differences: list[str], *, is_for_all: bool
) -> tuple[str, int]:
    """A text after an edit whose `old_string` looks like a part of it."""
    old = without_line_numbers(given)
    if old != given:
        new = without_line_numbers(new)
    places = find_loosely(content, old)
    if not places:
        raise EditError("`old_string` is not in the file.", **_hints(content, old))
    if len(places) > 1 and not is_for_all:
        raise EditError(
            f"`old_string` is not in the file, but {len(places)} places look like it; copy one "
            "exactly, with more surrounding text.",
            lines=[content.count("\n", 0, start) + 1 for start, _ in places[:MAX_LISTED_MATCHES]],
        )
    has_windows_ends = "\r\n" in content
    found = old
    for start, end in reversed(places):
        found = content[start:end].replace("\r\n", "\n")
        piece = reindented(new.replace("\r\n", "\n"), old, found)
        piece = piece.replace("\n", "\r\n") if has_windows_ends else piece
        content = content[:start] + piece + content[end:]
    differences.append(
        describe_difference(old, found) if old != found else "line numbers in `old_string`"
    )
    return content, len(places)


def preview_change(tool: str, arguments: JsonObject, path: Path) -> str:
    """The complete diff of a call of `write_file` or `patch`; empty if it would fail."""
    try:
        if tool == "patch":
            plan = plan_replacement(arguments, path)
            before, after = plan.file.text, plan.changed
        else:
            after = text(arguments, "content")
            before = files.load(path).text if path.exists() else ""
    except (ToolError, OSError):
        return ""
    if len(before) + len(after) > MAX_DIFF_CHARACTERS:  # comparing takes too long
        return "\n".join(f"+{line}" for line in split_lines(after))
    return unified_diff(before, after, path.name, MAX_DIFF_CHARACTERS)


def _with_line_ends(content: str, old: str, new: str) -> tuple[str, str]:
    """The two pieces with the line ends of the file, where it has those of Windows."""
    if "\r\n" not in content or (old in content and "\n" in old and "\r\n" not in old):
        return old, new
    plain_ends = content.count("\n") - content.count("\r\n")
    windows_old = old.replace("\r\n", "\n").replace("\n", "\r\n")
    if windows_old not in content:
        return old, new
    if "\n" not in old and plain_ends > content.count("\r\n"):
        return old, new
    return windows_old, new.replace("\r\n", "\n").replace("\n", "\r\n")


def _line_numbers(content: str, piece: str) -> list[int]:
    numbers: list[int] = []
    start = content.find(piece)
    while start >= 0 and len(numbers) < MAX_LISTED_MATCHES:
        numbers.append(content.count("\n", 0, start) + 1)
        start = content.find(piece, start + len(piece))
    return numbers


def _hints(content: str, old: str) -> dict[str, JsonData]:
    """The lines of a file that look most like the first one that was looked for."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = split_lines(content)[:MAX_COMPARED_LINES]
    if not wanted or not lines:
        return {}
    by_text = {line.strip(): number for number, line in reversed(list(enumerate(lines, 1)))}
    close_matches = difflib.get_close_matches(wanted, by_text, n=3, cutoff=0.6)
    closest = [f"{by_text[item]}|{lines[by_text[item] - 1]}"[:300] for item in close_matches]
    return {"closest": [displayable_text(line) for line in closest]} if closest else {}
