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
    Command("chat", "hermes_cli.commands.chat.command", "talk to the agent"),
    Command("tui", "hermes_cli.commands.chat.tui", "talk to the agent on a whole screen"),
    Command("setup", "hermes_cli.commands.models.setup", "choose a model, in a minute"),
    Command("models", "hermes_cli.commands.models.command", "list, fetch, choose and test models"),
    Command(
        "sessions",
        "hermes_cli.commands.sessions.command",
        "look at conversations: list, show, tail",
    ),
    Command(
        "achievements", "hermes_cli.commands.achievements.command", "what your history has earned"
    ),
    Command(
        "recap", "hermes_cli.commands.achievements.recap", "look back on a year, a month or a week"
    ),
    Command("dashboard", "hermes_cli.commands.dashboard.command", "all of it on a web page"),
    Command(
        "plugins", "hermes_cli.commands.plugins.command", "list plugins, switch them on and off"
    ),
    Command(
        "hooks", "hermes_cli.commands.plugins.hooks", "what plugins hear of sessions, and heard"
    ),
    Command(
        "backup", "hermes_cli.commands.system.backup", "write history and settings to one file"
    ),
    Command("restore", "hermes_cli.commands.system.restore", "put a backup back"),
    Command("config", "hermes_cli.commands.system.config", "read and change settings"),
    Command("completion", "hermes_cli.commands.system.completion", "let your shell finish words"),
    Command(
        "gateway", "hermes_cli.commands.gateway.command", "answer chats: run, start, stop, status"
    ),
    Command("send", "hermes_cli.commands.gateway.send", "send a message to a chat"),
    Command("pairing", "hermes_cli.commands.gateway.pairing", "who may talk to the agent in chats"),
    Command(
        "mcp", "hermes_cli.commands.system.mcp", "let other agents read conversations, over MCP"
    ),
    Command("serve", "hermes_cli.commands.chat.serve", "keep conversations running"),
    Command(
        "demo",
        "hermes_cli.commands.dashboard.demo",
        "look at it all with a history that is made up",
    ),
    Command("doctor", "hermes_cli.commands.system.doctor", "check that everything is sound"),
)

EXAMPLES = """\
examples:
  hermes                        talk to the agent on a whole screen
  hermes -c                     go on with the latest conversation of this folder
  hermes sessions list          the latest conversations
  hermes sessions show last     read the latest one
  hermes config list            all settings and their values
  hermes doctor                 check the history and the installation

`hermes COMMAND --help` explains a command.
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in the width of the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(terminal_columns(), 100) - 2, max_help_position=28)


def build(command: str | None, *, is_whole: bool = False) -> argparse.ArgumentParser:
    """The parser, with the arguments of *command* filled in, or of all when *is_whole*."""
    parser = argparse.ArgumentParser(
        prog="hermes",
        description="Hermes keeps your conversations with an AI agent; look back on them here.",
        epilog=EXAMPLES,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hermes {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each in COMMANDS:
        child = add(commands, each.name, each.help)
        if is_whole or each.name == command:
            module = each.load()
            child.epilog = module.EXAMPLES
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
        epilog=examples,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    if run is not None:
        child.set_defaults(run=run)
    return child


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, with the same words everywhere."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_conversation(parser: argparse.ArgumentParser, source: str) -> None:
    """Which conversation, and with whom: the same for every way to talk."""
    parser.add_argument(
        "-c", "--continue", dest="again", action="store_true",
        help="go on with the latest conversation of this folder",
    )  # fmt: skip
    parser.add_argument("-r", "--resume", metavar="ID", help="go on with this conversation")
    parser.add_argument("--model", default="", metavar="NAME", help="ask this model")
    parser.add_argument(
        "--source", default=source, metavar="NAME", help="the place it is noted under"
    )
