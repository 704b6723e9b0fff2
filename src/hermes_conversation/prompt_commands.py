"""Slash commands in files: of the Hermes folder, and trusted ones of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from hermes_agent.project.commands import FileCommand


def commands_in_files(taken: Collection[str], cwd: Path | None) -> dict[str, FileCommand]:
    """The commands by name, except for *taken* names; read at each call.

    So a changed file of a project is no longer used, and a trusted one is used at once.
    """
    from hermes_agent.project.commands import file_commands  # noqa: PLC0415 - most have none
    from hermes_agent.project.trust import assess_project  # noqa: PLC0415 - as above

    trusted = assess_project(cwd).trusted if cwd is not None else ()
    found = file_commands(hermes_home(), trusted)
    return {name: command for name, command in found.items() if name not in taken}


def expand_prompt(text: str, taken: Collection[str], cwd: Path | None) -> str:
    """The prompt of a command in a file if a text is its line, e.g. `/fix tests`; else the text."""
    if not text.startswith("/"):
        return text
    name, _, words = text[1:].partition(" ")
    command = commands_in_files(taken, cwd).get(name.lower())
    return text if command is None else command.prompt(words.strip())
