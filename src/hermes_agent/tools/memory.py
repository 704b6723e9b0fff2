"""`memory` keeps facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.memory.files import MEMORY_KINDS, SEPARATOR, used_characters
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    choice,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)

if TYPE_CHECKING:
    from hermes_agent.memory.files import MemoryFiles
    from hermes_core.json_values import JsonData, JsonObject

ACTIONS = ("add", "replace", "remove", "read")


def memory_tool(files: MemoryFiles) -> Tool:
    """The tool that keeps facts."""
    return Tool(
        "memory",
        "Short facts that every prompt includes: memory (work, environment) or user (the person). "
        "Save what the user corrects or will want next time.",
        schema(
            "action",
            action=parameter("string", enum=list(ACTIONS)),
            target=parameter("string", enum=list(MEMORY_KINDS)),
            text=parameter("string"),
            old=parameter("string", "of the entry"),
        ),
        reporting_errors(lambda arguments, _context: _memory(files, arguments)),
    )


def _memory(files: MemoryFiles, arguments: JsonObject) -> str:
    action = text(arguments, "action")
    target = choice(arguments, "target", tuple(MEMORY_KINDS))
    if action == "read":
        return _state(target, files.entries(target), with_entries=True)
    if action == "add":
        return _state(target, files.add(target, _entry(arguments)))
    if action == "replace":
        old = _piece(arguments, "old")
        return _state(target, files.replace(target, old, _entry(arguments)))
    if action == "remove":
        old = _piece(arguments, "old" if arguments.get("old") else "text")
        return _state(target, files.remove(target, old))
    raise ToolError(f"`action` must be one of {', '.join(ACTIONS)}.")


def _entry(arguments: JsonObject) -> str:
    entry = _piece(arguments, "text").replace("\r\n", "\n")
    if SEPARATOR in f"\n{entry}\n":
        raise ToolError("A line with only `§` separates entries; an entry cannot contain it.")
    if any(line.lstrip().startswith("#") for line in entry.splitlines()):
        raise ToolError("A line of an entry cannot begin with `#`: it would look like a heading.")
    entry.encode()  # lone surrogates are refused before anything is changed
    return entry


def _piece(arguments: JsonObject, name: str) -> str:
    piece = text(arguments, name).strip()
    if not piece:
        raise ToolError(f"`{name}` is empty.")
    return piece


def _state(target: str, entries: list[str], *, with_entries: bool = False) -> str:
    used = f"{used_characters(entries):,} of {MEMORY_KINDS[target].characters:,} characters"
    facts: dict[str, JsonData] = {"target": target, "entries": len(entries), "used": used}
    if with_entries:
        facts["entries"] = entries
    return success(**facts)
