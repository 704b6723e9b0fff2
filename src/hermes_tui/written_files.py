"""What a call of `write_file` changes, as a diff; its result names the file only."""

from __future__ import annotations

import json
from typing import Final

from hermes_agent.tools.patch import unified_diff
from hermes_core.json_values import text_in

WRITE_TOOL: Final = "write_file"
MAX_CHARACTERS: Final = 100_000  # comparing more takes long


def written_change(name: str, arguments: str, before: str | None) -> str:
    """The diff from the text that a call replaces, None for a new file; empty for other calls."""
    if name != WRITE_TOOL:
        return ""
    try:
        fields = json.loads(arguments)
    except ValueError:
        return ""
    content = text_in(fields, "content") if isinstance(fields, dict) else ""
    if len(content) + len(before or "") > MAX_CHARACTERS:
        return ""
    return unified_diff(before or "", content, "file")


def stored_change(name: str, arguments: str, result: str) -> str:
    """The diff of a stored call that created a file; what another one replaced is not stored."""
    if name != WRITE_TOOL:
        return ""
    try:
        fields = json.loads(result)
    except ValueError:
        return ""
    is_new = isinstance(fields, dict) and fields.get("new") is True
    return written_change(name, arguments, None) if is_new else ""
