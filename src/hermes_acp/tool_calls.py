"""Tool calls as editors show them: kind, files, changes, output, status."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
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
    from tui_gateway.protocol import ToolComplete, ToolStart, ToolText

OUTPUT_PAUSE_SECONDS: Final = 0.1  # between two updates with output, which repeat all of it


@dataclass(slots=True)
class ShownCall:
    """A running call."""

    call: ToolStart
    shown_id: str
    output: str = ""
    output_at: float = 0.0


class ShownCalls:
    """The calls of one conversation."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._counts: dict[str, int] = {}
        self._running: dict[str, ShownCall] = {}

    def start(self, call: ToolStart) -> ToolCallStart:
        """A call has started."""
        number = self._counts[call.tool_id] = self._counts.get(call.tool_id, 0) + 1
        shown_id = call.tool_id if number == 1 and call.tool_id else f"{call.tool_id}-{number}"
        self._running[call.tool_id] = ShownCall(call, shown_id)
        update = start_call(call, self._cwd)
        return update.model_copy(update={"tool_call_id": shown_id})

    def add_output(self, event: ToolText) -> ToolCallProgress | None:
        """The output of a running call so far; None if it was shown a moment ago."""
        shown = self._running.get(event.tool_id)
        if shown is None:
            return None
        shown.output = (shown.output + event.text)[-MAX_OUTPUT_CHARACTERS:]
        now = time.monotonic()
        if now - shown.output_at < OUTPUT_PAUSE_SECONDS:
            return None
        shown.output_at = now
        return show_output(shown.shown_id, shown.output)

    def finish(self, result: ToolComplete) -> ToolCallProgress:
        """A call has ended."""
        shown = self._running.pop(result.tool_id, None)
        update = finish_call(result, shown.call if shown else None, self._cwd)
        shown_id = shown.shown_id if shown else result.tool_id
        return update.model_copy(update={"tool_call_id": shown_id})

    def find(self, tool_id: str) -> ShownCall | None:
        """A running call."""
        return self._running.get(tool_id)

    def is_running(self, tool_id: str) -> bool:
        """Whether a call is shown as running."""
        return tool_id in self._running

    def running(self) -> list[ToolStart]:
        """The calls that have not ended."""
        return [shown.call for shown in self._running.values()]


KINDS: Final[dict[str, ToolKind]] = {
    "read_file": "read",
    "skill": "read",
    "write_file": "edit",
    "patch": "edit",
    "search_files": "search",
    "session_search": "search",
    "session_read": "read",
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
