"""Commands of a plugin that are not used, because their names are taken or not valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes_plugin_host
from hermes_cli import parser
from hermes_conversation.plugin_commands import provided_commands
from hermes_conversation.slash_commands import BUILT_IN_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_plugin_host.manager import Plugin


def unused_commands(plugin: Plugin) -> Iterator[str]:
    """A line for each command that is not used, with the reason."""
    provided = provided_commands(BUILT_IN_NAMES)
    for command in plugin.registered.commands:
        name = command.name.lower()
        owner = provided[name].plugin if name in provided else ""
        if owner != plugin.key:
            yield _line(f"/{command.name}", owner, is_built_in=name in BUILT_IN_NAMES)
    built_in = {command.name for command in parser.COMMANDS}
    for cli_command in plugin.registered.cli_commands:
        name = cli_command.name
        owner = "" if name in built_in or name.startswith("-") else _cli_owner(name)
        if owner != plugin.key:
            yield _line(f"hermes {name}", owner, is_built_in=name in built_in)


def _cli_owner(name: str) -> str:
    """The first plugin that has a command, which is the one that is called."""
    plugins = hermes_plugin_host.active().plugins.values()
    names = (
        (each.key, command.name) for each in plugins for command in each.registered.cli_commands
    )
    return next((key for key, each in names if each == name), "")


def _line(command: str, owner: str, *, is_built_in: bool) -> str:
    if is_built_in:
        return f"the command {command} is ignored: Hermes has a command with this name"
    if owner:
        return f"the command {command} is ignored: the plugin {owner} has a command with this name"
    return f"the command {command} is ignored: invalid name"
