"""`hermes NAME` for the commands of enabled plugins."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import hermes_plugin_host
from hermes_cli.parser import HelpFormatter
from hermes_core.command_name import command_name
from hermes_core.errors import HermesError, PluginError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_cli.output import CommandOutput
    from hermes_plugin_host.context import CliCommand


class PluginCommand(NamedTuple):
    """A command and the plugin it comes from."""

    plugin: str
    command: CliCommand

    def run(self, arguments: Sequence[str], out: CommandOutput) -> int:
        """Parse the arguments and call the plugin; report its failures."""
        parser = argparse.ArgumentParser(
            prog=f"{command_name()} {self.command.name}",
            description=self.command.description or self.command.help,
            epilog=f"Command of the plugin {self.plugin}.",
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        setup = self.command.setup
        if setup is not None:
            self._isolated(lambda: setup(parser))
        chosen = parser.parse_args(arguments)
        handler = self.command.handler or getattr(chosen, "func", None)
        if not callable(handler):  # e.g. a command with actions, and none was given
            parser.print_help()
            return 2
        try:
            code = self._isolated(lambda: handler(chosen))
        except SystemExit as stop:
            code = stop.code
            if isinstance(code, str):
                out.error(code)
                return 1
        return code if isinstance(code, int) else 0

    def _isolated(self, call: Callable[[], object]) -> object:
        result = attempt(f"plugin {self.plugin}, command {self.command.name}", call)
        if not isinstance(result, Failure):
            return result
        error = result.error
        if isinstance(error, HermesError | BrokenPipeError):
            raise error
        raise PluginError(
            f"Plugin {self.plugin} failed in `hermes {self.command.name}`: "
            f"{type(error).__name__}: {error}"
        ) from error


def find(name: str, out: CommandOutput) -> PluginCommand | None:
    """Find a command of an enabled plugin; of two the first plugin's."""
    for plugin in hermes_plugin_host.active().plugins.values():
        for command in plugin.registered.cli_commands:
            if command.name == name:
                return PluginCommand(plugin.key, command)
        if plugin.status == "failed":
            out.note(f"hermes: plugin {plugin.key} failed to load: {plugin.detail}")
    return None
