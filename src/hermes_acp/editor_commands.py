"""Slash commands in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from acp.helpers import update_available_commands
from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from hermes_core.json_values import objects_in
from tui_gateway.protocol import (
    parse,
)
from tui_gateway.summaries import CommandSummary

if TYPE_CHECKING:
    from pathlib import Path

    from acp.schema import AvailableCommandsUpdate

    from hermes_acp.daemon_link import DaemonLink

# What the editor does by itself: threads, answers to questions, stopping, sending.
EDITORS_OWN: Final = frozenset(
    {"new", "resume", "branch", "handoff", "quit", "approve", "deny", "stop", "queue", "steer"}
)
NOT_HERE: Final = (
    "/{} is not available in an editor, which has its own way to do this. In a terminal, "
    "`hermes -r` continues this conversation with all commands."
)


class TypedCommand(NamedTuple):
    """A command that was typed; with a problem it is not run."""

    name: str
    argument: str
    problem: str = ""


async def available(link: DaemonLink, cwd: Path) -> AvailableCommandsUpdate:
    """The commands that an editor offers."""
    return update_available_commands(
        AvailableCommand(
            name=command.name.removeprefix("/"),
            description=command.help,
            input=_input(command.hint),
        )
        for command in await _catalog(link, cwd)
        if command.name.removeprefix("/") not in EDITORS_OWN
    )


def _input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(UnstructuredCommandInput(hint=hint)) if hint else None


async def find(link: DaemonLink, text: str, cwd: Path) -> TypedCommand | None:
    """The command in a prompt; None for other texts, such as paths."""
    if not text.startswith("/"):
        return None
    word, _, argument = text.partition(" ")
    for command in await _catalog(link, cwd):
        if word.lower() in {command.name, *command.aliases}:
            name = command.name.removeprefix("/")
            problem = NOT_HERE.format(name) if name in EDITORS_OWN else ""
            return TypedCommand(name, argument.strip(), problem)
    return None


async def _catalog(link: DaemonLink, cwd: Path) -> list[CommandSummary]:
    answer = await link.call("commands.catalog", cwd=str(cwd))
    return [parse(CommandSummary, item) for item in objects_in(answer, "commands")]
