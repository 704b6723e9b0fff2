"""The commands, and the argument parser built from them.

`hermes --help` reads only the table below; a command's module is imported when that
command is asked for.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from hermes_cli.output import terminal_columns
from hermes_core import __version__
from hermes_core.command_name import command_name, with_command_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.output import Output

    Run = Callable[[argparse.Namespace, Output], int]


class CommandModule(Protocol):
    """What a module in `hermes_cli.commands` offers."""

    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments and set `run`."""
        ...


class Command(NamedTuple):
    """One command: its name, where it lives, what it is for."""

    name: str
    module: str
    help: str

    def load(self) -> CommandModule:
        """Import the module."""
        return cast("CommandModule", import_module(self.module))


COMMANDS = (
    Command("chat", "hermes_cli.commands.chat.command", "chat with the agent in plain text"),
    Command("tui", "hermes_cli.commands.chat.tui", "start the full-screen terminal UI"),
    Command("setup", "hermes_cli.commands.models.setup", "configure a model provider"),
    Command(
        "models", "hermes_cli.commands.models.command", "list, download, select and test models"
    ),
    Command(
        "sessions",
        "hermes_cli.commands.sessions.command",
        "manage conversations",
    ),
    Command("achievements", "hermes_cli.commands.achievements.command", "show earned achievements"),
    Command(
        "recap", "hermes_cli.commands.achievements.recap", "summarize a year, a month or a week"
    ),
    Command("dashboard", "hermes_cli.commands.dashboard.command", "open the web dashboard"),
    Command("plugins", "hermes_cli.commands.plugins.command", "list, enable and disable plugins"),
    Command("hooks", "hermes_cli.commands.plugins.hooks", "inspect plugin hooks and the event log"),
    Command(
        "backup", "hermes_cli.commands.system.backup", "back up history and settings to one file"
    ),
    Command("restore", "hermes_cli.commands.system.restore", "restore a backup"),
    Command("config", "hermes_cli.commands.system.config", "read and change settings"),
    Command(
        "completion", "hermes_cli.commands.system.completion", "print a shell completion script"
    ),
    Command("gateway", "hermes_cli.commands.gateway.command", "run the gateway for chat apps"),
    Command("send", "hermes_cli.commands.gateway.send", "send a message to a chat"),
    Command("pairing", "hermes_cli.commands.gateway.pairing", "manage who may chat with the agent"),
    Command(
        "mcp", "hermes_cli.commands.system.mcp", "serve conversations to other agents over MCP"
    ),
    Command("serve", "hermes_cli.commands.chat.serve", "run the background daemon"),
    Command(
        "demo",
        "hermes_cli.commands.dashboard.demo",
        "try Hermes with sample data",
    ),
    Command(
        "doctor", "hermes_cli.commands.system.doctor", "check the installation and the history"
    ),
)

EXAMPLES = """\
examples:
  hermes                        start the full-screen terminal UI
  hermes -c                     continue the most recent conversation in this directory
  hermes sessions list          list the most recent conversations
  hermes sessions show last     print the most recent conversation
  hermes config list            list all settings and their values
  hermes doctor                 check the installation and the history

Run `hermes COMMAND --help` for the options of a command.
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in the width of the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(terminal_columns(), 100) - 2, max_help_position=28)


def build(command: str | None, *, is_whole: bool = False) -> argparse.ArgumentParser:
    """The parser, with the arguments of *command* filled in, or of all when *is_whole*."""
    parser = argparse.ArgumentParser(
        prog=command_name(),
        description="Hermes is a personal AI agent that saves every conversation.",
        epilog=with_command_name(EXAMPLES),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hermes {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each in COMMANDS:
        child = add(commands, each.name, each.help)
        if is_whole or each.name == command:
            module = each.load()
            child.epilog = with_command_name(module.EXAMPLES)
            module.configure(child)
    return parser


def add(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    purpose: str,
    *,
    examples: str = "",
    run: Run | None = None,
) -> argparse.ArgumentParser:
    """One more command or action under *actions*."""
    child = actions.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=with_command_name(examples),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    if run is not None:
        child.set_defaults(run=run)
    return child


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, with the same words everywhere."""
    parser.add_argument("--json", action="store_true", help="output JSON")


def add_conversation(parser: argparse.ArgumentParser, source: str) -> None:
    """Which conversation, and with whom: the same for every way to talk."""
    parser.add_argument(
        "-c", "--continue", dest="again", action="store_true",
        help="continue the most recent conversation in this directory",
    )  # fmt: skip
    parser.add_argument("-r", "--resume", metavar="ID", help="continue this conversation")
    parser.add_argument("--model", default="", metavar="NAME", help="use this model")
    parser.add_argument(
        "--source", default=source, metavar="NAME", help="source label stored with the session"
    )
