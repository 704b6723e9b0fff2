"""Tool calls as editors show them: kind, files, changes, output, status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation, ToolCallProgress, ToolCallStart

from hermes_agent.tools.base import error_in
from hermes_core.json_values import number_in, text_in

if TYPE_CHECKING:
    from acp.helpers import ToolCallContentVariant
    from acp.schema import ToolCallStatus, ToolKind

    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.protocol import ToolComplete, ToolStart

KINDS: Final[dict[str, ToolKind]] = {
    "read_file": "read",
    "skill": "read",
    "write_file": "edit",
    "patch": "edit",
    "search_files": "search",
    "session_search": "search",
    "find_tools": "search",
    "web_search": "search",
    "web_fetch": "fetch",
    "present_plan": "switch_mode",
    "terminal": "execute",
    "process": "execute",
    "delegate_task": "think",
    "memory": "think",
}
MAX_OUTPUT_CHARACTERS: Final = 20_000  # of running commands; the end is shown
MAX_RESULT_CHARACTERS: Final = 60_000
MAX_TITLE_CHARACTERS: Final = 200
COMMAND_TOOL: Final = "terminal"


def kind_of(name: str) -> ToolKind:
    """The kind of a tool."""
    return KINDS.get(name, "other")


def parse_arguments(text: str) -> JsonObject:
    """The arguments of a call; empty if they are not an object."""
    parsed = _parsed(text)
    return parsed if isinstance(parsed, dict) else {}


def _parsed(text: str) -> JsonValue:
    """A result or arguments as JSON; the text itself if it is none."""
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError:
        return text
    return parsed


def start_call(call: ToolStart, cwd: Path, status: ToolCallStatus = "in_progress") -> ToolCallStart:
    """A call that has started."""
    arguments = parse_arguments(call.args_text)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=call.tool_id,
        title=title_of(call),
        kind=kind_of(call.name),
        status=status,
        content=changes(call, cwd) or None,
        locations=locations(arguments, cwd),
        raw_input=arguments or call.args_text,
    )


def title_of(call: ToolStart) -> str:
    """One line about a call; a command without the name of its tool."""
    line = call.context.removeprefix(f"{COMMAND_TOOL} ").partition("\n")[0].strip()
    return (line or call.name)[:MAX_TITLE_CHARACTERS]


def locations(arguments: JsonObject, cwd: Path) -> list[ToolCallLocation] | None:
    """The file of a call."""
    path = text_in(arguments, "path")
    if not path:
        return None
    line = number_in(arguments, "offset") or None
    return [ToolCallLocation(path=absolute(path, cwd), line=line)]


def absolute(path: str, cwd: Path) -> str:
    """A path as the tools read it."""
    try:
        return str(cwd / Path(path).expanduser())
    except RuntimeError:  # a home that does not exist
        return str(cwd / path)


def changes(call: ToolStart, cwd: Path) -> list[ToolCallContentVariant]:
    """The change of a file by a call, as a diff."""
    arguments = parse_arguments(call.args_text)
    path = absolute(text_in(arguments, "path"), cwd)
    if call.name == "write_file":
        return [tool_diff_content(path, text_in(arguments, "content"), call.before)]
    if call.name == "patch":
        new, old = text_in(arguments, "new_string"), text_in(arguments, "old_string")
        return [tool_diff_content(path, new, old)]
    return []


def show_output(tool_id: str, output: str) -> ToolCallProgress:
    """The output of a running call so far."""
    shown = output[-MAX_OUTPUT_CHARACTERS:]
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=tool_id,
        status="in_progress",
        content=[tool_content(text_block(_console(shown)))],
    )


def finish_call(result: ToolComplete, call: ToolStart | None, cwd: Path) -> ToolCallProgress:
    """A call that has ended; a change of a file stays visible."""
    error = error_in(result.result)
    content: list[ToolCallContentVariant] = [] if call is None else changes(call, cwd)
    if error is not None or not content:
        content = [*content, tool_content(text_block(_shown_result(result)))]
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=result.tool_id,
        status="completed" if error is None else "failed",
        content=content,
        raw_output=_parsed(result.result),
    )


def _shown_result(result: ToolComplete) -> str:
    """The result of a call for people."""
    facts = parse_arguments(result.result)
    error = error_in(result.result)
    if result.name == COMMAND_TOOL and "output" in facts:
        code = facts.get("exit_code")
        ending = f"exit code {code}" if code else ""
        parts = [_console(text_in(facts, "output")), ending, text_in(facts, "sandbox"), error or ""]
        return "\n".join(part for part in parts if part)
    if error is not None:
        return error
    if "content" in facts:
        return _fenced(text_in(facts, "content"), "")
    return _fenced(result.result, "json" if facts else "")


def _console(output: str) -> str:
    return _fenced(output, "console") if output.strip() else ""


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text[:MAX_RESULT_CHARACTERS].rstrip()}\n{fence}"
