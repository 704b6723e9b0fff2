"""The text of a file before `write_file` replaces it, for clients that show the change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.tools import files
from hermes_agent.tools.arguments import ToolError
from hermes_core.json_values import text_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.json_values import JsonObject
    from tui_gateway.protocol import ToolStart

WRITE_TOOL: Final = "write_file"
MAX_TEXT_BYTES: Final = 500_000  # a longer text is not sent


def replaced_text(
    call: ToolStart, cwd: Path, is_hidden: Callable[[Path, Path], bool]
) -> str | None:
    """The current text of the file that a call replaces; None for a new one and other calls."""
    if call.name != WRITE_TOOL:
        return None
    try:
        arguments: JsonObject = json.loads(call.args_text)
        path = (cwd / Path(text_in(arguments, "path")).expanduser()).resolve()
        if is_hidden(path, cwd) or path.stat().st_size > MAX_TEXT_BYTES:
            return None
        return files.displayable_text(files.load(path).text)
    except (OSError, ValueError, AttributeError, RuntimeError, ToolError):
        return None  # there is no such file, or the tool reports what is wrong with it
