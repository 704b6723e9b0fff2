"""`patch`: replace a piece of a file by another, found by its exact text."""

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

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.files import LimitsFiles
    from hermes_core.json_values import JsonData, JsonObject

DIFF_CHARACTERS = 20_000  # of a result for the model
MAX_DIFF_CHARACTERS = 500_000
MAX_COMPARED_LINES = 5_000
MAX_LISTED_MATCHES = 10


def patch_tool(limits: LimitsFiles) -> Tool:
    """The tool."""
    return Tool(
        "patch",
        "Replace old_string, which must occur exactly once unless replace_all. Give the text "
        "without the line numbers of read_file.",
        schema(
            "path old_string new_string",
            path=parameter("string"),
            old_string=parameter("string"),
            new_string=parameter("string"),
            replace_all=parameter("boolean"),
        ),
        reporting_errors(lambda arguments, context: _patch(limits, arguments, context)),
    )


class Replacement(NamedTuple):
    """A change of a file that can be carried out."""

    path: Path
    file: files.TextFile
    changed: str
    matches: int


def _patch(limits: LimitsFiles, arguments: JsonObject, context: ToolContext) -> str:
    path = limits.real_path(resolve_path(text(arguments, "path"), context.cwd), context)
    replacement = plan_replacement(arguments, path)
    if isinstance(replacement, str):
        return replacement
    path, file, changed, count = replacement
    files.replace_file(path, file.encoded(changed))
    return success(diff=unified_diff(file.text, changed, path.name), replaced=count)


def plan_replacement(arguments: JsonObject, path: Path) -> Replacement | str:
    """The change of a file that a call asks for, or the failure as JSON."""
    old, new = text(arguments, "old_string"), text(arguments, "new_string")
    if not old:
        raise ToolError("`old_string` is empty; use write_file for a new file.")
    if old == new:
        raise ToolError("`old_string` and `new_string` are the same.")
    file = files.load(path)
    old, new = _with_line_ends(file.text, old, new)
    count = file.text.count(old)
    if count == 0:
        return failure("`old_string` is not in the file.", **_hints(file.text, old))
    if count > 1 and not flag(arguments, "replace_all"):
        return failure(
            f"`old_string` occurs {count} times; give more surrounding text, or set replace_all.",
            lines=_line_numbers(file.text, old),
        )
    return Replacement(path, file, file.text.replace(old, new), count)


def preview_change(tool: str, arguments: JsonObject, path: Path) -> str:
    """The complete diff of a call of `write_file` or `patch`; empty if it would fail."""
    try:
        if tool == "patch":
            plan = plan_replacement(arguments, path)
            if isinstance(plan, str):
                return ""
            before, after = plan.file.text, plan.changed
        else:
            after = text(arguments, "content")
            before = files.load(path).text if path.exists() else ""
    except (ToolError, OSError):
        return ""
    if len(before) + len(after) > MAX_DIFF_CHARACTERS:  # comparing takes too long
        return "\n".join(f"+{line}" for line in after.splitlines())
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
    """What stands in the file that looks most like what was looked for."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = content.splitlines()[:MAX_COMPARED_LINES]
    if not wanted or not lines:
        return {}
    by_text = {line.strip(): number for number, line in reversed(list(enumerate(lines, 1)))}
    close_matches = difflib.get_close_matches(wanted, by_text, n=3, cutoff=0.6)
    closest = [f"{by_text[item]}|{lines[by_text[item] - 1]}"[:300] for item in close_matches]
    facts: dict[str, JsonData] = {"closest": [files.displayable_text(line) for line in closest]}
    if " ".join(old.split()) in " ".join(content.split()):
        facts["hint"] = "Only whitespace differs: copy it exactly from read_file."
    return facts


def unified_diff(before: str, after: str, name: str, limit: int = DIFF_CHARACTERS) -> str:
    """The differences of two texts."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    diff = files.displayable_text("\n".join(lines))
    if len(diff) > limit:
        return f"{diff[:limit]}\n[… {len(diff) - limit:,} characters cut …]"
    return diff
