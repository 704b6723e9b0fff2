"""What a shell hook gets on its standard input: names and fields of Claude Code, and our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.json_values import object_in, text_in

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

MCP_CALL: Final = "call_tool"
TOOL_NAMES: Final = {
    "terminal": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "patch": "Edit",
    "search_files": "Grep",
    "delegate_task": "Task",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "todo": "TodoWrite",
}
# Of the tools whose input has the same meaning under other names.
FIELD_NAMES: Final = {
    "terminal": {"background": "run_in_background"},
    "read_file": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "patch": {"path": "file_path"},
}
GLOB_NAME: Final = "Glob"
MS_PER_SECOND: Final = 1000
END_REASONS: Final = {
    "new_session": "clear",
    "cli_close": "prompt_input_exit",
    "tui_close": "prompt_input_exit",
}


class HookTool(NamedTuple):
    """A tool call under the names that hooks know."""

    name: str
    input: JsonObject


def hook_tool(name: str, arguments: JsonObject) -> HookTool:
    """The names of Claude Code for a call; tools that it does not have keep theirs."""
    if name == MCP_CALL:
        server, _, tool = text_in(arguments, "name").partition("/")
        return HookTool(f"mcp__{server}__{tool}", object_in(arguments, "arguments"))
    if name == "search_files" and text_in(arguments, "mode") == "files":
        return HookTool(GLOB_NAME, arguments)
    names = FIELD_NAMES.get(name, {})
    translated: JsonObject = {names.get(key, key): value for key, value in arguments.items()}
    seconds = arguments.get("timeout")
    if name == "terminal" and isinstance(seconds, (int, float)):
        translated["timeout"] = seconds * MS_PER_SECOND
    return HookTool(TOOL_NAMES.get(name, name), translated)


def tool_fields(name: str, arguments: JsonObject, call_id: str) -> JsonObject:
    """The fields about a call."""
    tool = hook_tool(name, arguments)
    return {
        "tool_name": tool.name,
        "tool_input": tool.input,
        "tool_use_id": call_id,
        "hermes_tool_name": name,
        "hermes_tool_input": arguments,
    }
