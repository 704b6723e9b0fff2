"""What the files of a project would run or tell the model, for the question whether to trust it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.config import project_servers
from hermes_agent.project.commands import parse_command
from hermes_agent.project.files import FileKind
from hermes_agent.shell_hooks.config import parse_project_hooks
from hermes_agent.skills import find_skills
from hermes_core.json_values import list_in, object_in, parse_object, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_agent.project.files import ProjectFile
    from hermes_agent.project.trust import PendingFile
    from hermes_core.json_values import JsonObject


TRUST_WARNING: Final = (
    "Trusted files run commands as you, outside of the agent's sandbox (hooks), start "
    "programs (MCP servers) and instruct the agent (commands, skills)."
)


def describe_file(file: ProjectFile) -> list[str]:
    """One line for each thing that a file adds; commands are complete."""
    if file.kind is FileKind.MCP:
        return list(_servers(file)) or ["cannot be parsed, or has no mcpServers"]
    if file.kind is FileKind.HOOKS:
        found = parse_project_hooks(file)
        return [*(f"runs at {hook.label}" for hook in found.hooks), *found.problems]
    if file.kind is FileKind.COMMAND:
        command = parse_command(file.path, file.folder, file.text)
        return [f"command /{command.name}: {command.description}"] if command else ["unusable name"]
    if file.kind is FileKind.SKILL:
        skills = find_skills(file.folder / "-", [file])
        return [f"skill {skill.name}: {skill.problem or skill.description}" for skill in skills]
    return []


def describe_pending(pending: tuple[PendingFile, ...]) -> list[str]:
    """The lines of the question: each file, and what it would run."""
    lines: list[str] = []
    data_files: dict[Path, int] = {}
    for item in pending:
        if item.file.kind is FileKind.SKILL_DATA:
            data_files[item.file.folder] = data_files.get(item.file.folder, 0) + 1
            continue
        lines.append(f"{item.file.name} ({item.state})")
        lines += [f"    {line}" for line in describe_file(item.file)]
    lines += [
        f"{folder.name}: {count} other files of a skill (new or changed)"
        for folder, count in data_files.items()
    ]
    return lines


def _servers(file: ProjectFile) -> Iterator[str]:
    if parse_object(file.text) is None:
        return
    for name, fields in project_servers(file.text).items():
        if not isinstance(fields, dict):
            yield f"MCP server {name}: invalid"
        elif text_in(fields, "command"):
            words = [text_in(fields, "command"), *map(str, list_in(fields, "args"))]
            yield f"MCP server {name} runs: {shlex.join(words)}{_variables(fields, 'env')}"
        else:
            yield f"MCP server {name} connects to {text_in(fields, 'url')}" + _variables(
                fields, "headers"
            )


def _variables(fields: JsonObject, key: str) -> str:
    pairs = [f"{name}={value}" for name, value in object_in(fields, key).items()]
    return f" with {', '.join(pairs)}" if pairs else ""
