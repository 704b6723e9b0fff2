"""Slash commands in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


class TypedCommand(NamedTuple):
    """A command that was typed; whether editors have it is for the daemon to say."""

    name: str
    argument: str


async def available(link: DaemonLink, cwd: Path) -> AvailableCommandsUpdate:
    """The commands that an editor offers."""
    return update_available_commands(
        AvailableCommand(
            name=command.name.removeprefix("/"),
            description=command.help,
            input=_input(command.hint),
        )
        for command in await _catalog(link, cwd, "editor")
    )


def _input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(UnstructuredCommandInput(hint=hint)) if hint else None


async def find(link: DaemonLink, text: str, cwd: Path) -> TypedCommand | None:
    """The command in a prompt; None for other texts, such as paths."""
    if not text.startswith("/"):
        return None
    word, _, argument = text.partition(" ")
    for command in await _catalog(link, cwd, "screen"):
        if word.lower() in {command.name, *command.aliases}:
            name = command.name.removeprefix("/")
            return TypedCommand(name, argument.strip())
    return None


async def _catalog(link: DaemonLink, cwd: Path, surface: str) -> list[CommandSummary]:
    answer = await link.call("commands.catalog", cwd=str(cwd), surface=surface)
    return [parse(CommandSummary, item) for item in objects_in(answer, "commands")]
