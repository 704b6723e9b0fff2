"""The table of commands and the argument parser.

`hermes --help` needs only this table; the module of a command is imported on use.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from hermes_cli.output import terminal_columns
from hermes_core import __version__
from hermes_core.command_name import command_name, with_command_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput

    Run = Callable[[argparse.Namespace, CommandOutput], int]


class CommandModule(Protocol):
    """The interface of a module in `hermes_cli.commands`."""

    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments and set `run`."""
        ...


class CommandEntry(NamedTuple):
    """A command: its name, module in `hermes_cli.commands`, and purpose."""

    name: str
    module: str
    help: str

    def load(self) -> CommandModule:
        """Import the module."""
        return cast("CommandModule", import_module(f"hermes_cli.commands.{self.module}"))


COMMANDS = (
    CommandEntry("chat", "chat.command", "chat with the agent in plain text"),
    CommandEntry("tui", "chat.tui", "start the full-screen terminal UI"),
    CommandEntry("setup", "models.setup", "configure a model provider"),
    CommandEntry("models", "models.command", "list, download, select and test models"),
    CommandEntry("sessions", "sessions.command", "manage conversations"),
    CommandEntry("search", "sessions.search", "search all messages, in your own words"),
    CommandEntry("ask", "sessions.ask", "answer a question from your history, with quotations"),
    CommandEntry("why", "sessions.why", "show which conversation wrote a line of a file"),
    CommandEntry("fixes", "sessions.fixes", "show what worked when a command failed before"),
    CommandEntry("memory", "memory", "show what the agent remembers, and why"),
    CommandEntry("checkpoints", "sessions.checkpoints", "show and undo file changes of the agent"),
    CommandEntry("usage", "sessions.usage", "show tokens and cost by day, model or project"),
    CommandEntry("import", "imports.command", "import conversations of other agents"),
    CommandEntry(
        "handoff", "sessions.handoff", "continue a conversation in another agent or a chat app"
    ),
    CommandEntry("achievements", "achievements.command", "show earned achievements"),
    CommandEntry("recap", "achievements.recap", "summarize a year, a month or a week"),
    CommandEntry("dashboard", "dashboard.command", "open the web dashboard"),
    CommandEntry("plugins", "plugins.command", "list, enable and disable plugins"),
    CommandEntry("hooks", "plugins.hooks", "inspect plugin hooks and the event log"),
    CommandEntry("backup", "system.backup", "back up history and settings to one file"),
    CommandEntry("restore", "system.restore", "restore a backup"),
    CommandEntry("store", "system.store", "check and copy the database"),
    CommandEntry("nodes", "system.nodes", "list the machines that use the history"),
    CommandEntry("config", "system.config", "read and change settings"),
    CommandEntry(
        "permissions", "system.permissions", "show and change what is allowed without asking"
    ),
    CommandEntry("trust", "system.trust", "trust the commands and hooks of a project"),
    CommandEntry("install", "system.install", "put the hermes command on your PATH"),
    CommandEntry("update", "system.update", "install the newest version"),
    CommandEntry("completion", "system.completion", "print a shell completion script"),
    CommandEntry("gateway", "gateway.command", "run the gateway for chat apps"),
    CommandEntry("cron", "schedules.command", "schedule jobs and reminders"),
    CommandEntry("send", "gateway.send", "send a message to a chat"),
    CommandEntry("pairing", "gateway.pairing", "manage who may chat with the agent"),
    CommandEntry("people", "gateway.people", "list people and change their roles"),
    CommandEntry("api-keys", "gateway.api_keys", "manage keys for API clients"),
    CommandEntry("mcp", "mcp", "manage MCP servers, or serve as one"),
    CommandEntry("acp", "chat.acp", "serve conversations to editors over ACP"),
    CommandEntry("serve", "chat.serve", "run the background daemon"),
    CommandEntry("demo", "dashboard.demo", "try Hermes with sample data"),
    CommandEntry("bench", "system.bench", "measure how well the search answers questions"),
    CommandEntry("doctor", "system.doctor", "check the installation and the history"),
)

QUESTION_DEST: Final = "command"  # of the action that takes the first word
# Words that users of other programs try first.
OTHER_NAMES: Final = {
    "list": "sessions list", "ls": "sessions list", "history": "sessions list",
    "show": "sessions show", "export": "sessions export",
    "stats": "sessions stats", "cost": "usage",
    "upgrade": "update", "uninstall": "install --remove", "undo": "checkpoints restore",
}  # fmt: skip
EXAMPLES = """\
examples:
  hermes                        start the full-screen terminal UI
  hermes "what is this?"        ask one question and print the answer
  git diff | hermes -p "review this"
  hermes -c                     continue the most recent conversation in this folder
  hermes sessions list          list the most recent conversations
  hermes sessions show last     print the most recent conversation
  hermes search how did we …    find what was said
  hermes config list            list all settings and their values
  hermes doctor                 check the installation and the history

Run `hermes COMMAND --help` for the options of a command.
"""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help in the width of the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(terminal_columns(), 100) - 2, max_help_position=28)

    def _expand_help(self, action: argparse.Action) -> str:
        return with_command_name(super()._expand_help(action))


class CommandParser(argparse.ArgumentParser):
    """A parser whose error for an unknown word names the nearest one instead of all."""

    rest_name = ""  # of the attribute for the words after `--`, which argparse loses after options

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; a command reports unknown arguments with its own usage."""
        words = list(args) if self.rest_name and args is not None else []
        if "--" in words:
            args = words[: words.index("--")]
        parsed, unknown = super().parse_known_args(args, namespace)
        if self.rest_name:
            rest = words[words.index("--") + 1 :] if "--" in words else []
            setattr(parsed, self.rest_name, rest)
        if unknown and " " in self.prog.removeprefix(command_name()):
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - there is no other name
            super()._check_value(action, value)
            return
        import difflib  # noqa: PLC0415 - only for errors

        near = difflib.get_close_matches(str(value), action.choices, n=1)
        if action.dest == QUESTION_DEST and value in OTHER_NAMES:
            near = [OTHER_NAMES[value]]
        if near:
            hint = f"did you mean '{near[0]}'?"
        elif action.dest == QUESTION_DEST:
            hint = f"see `hermes --help`. To ask the agent: hermes -p '{value}'"
        else:
            hint = f"choose from {', '.join(action.choices)}"
        raise argparse.ArgumentError(None, with_command_name(f"unknown command '{value}': {hint}"))


def build_parser(
    command: str | None, *, is_complete: bool = False, is_alone: bool = False
) -> argparse.ArgumentParser:
    """Build the parser with the arguments of *command*, or of all if *is_complete*.

    With *is_alone* it knows no other command.
    """
    parser: argparse.ArgumentParser = CommandParser(
        prog=command_name(),
        description="Hermes is a personal AI agent that saves every conversation.",
        epilog=with_command_name(EXAMPLES),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hermes {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=command is not None, dest=QUESTION_DEST
    )
    if command is None:  # an unknown option is reported first
        text = "the following arguments are required: COMMAND"
        parser.set_defaults(run=lambda *_: parser.error(text))
    named = [each for each in COMMANDS if each.name == command]
    for each in named if named and is_alone else COMMANDS:
        child = add_command(commands, each.name, each.help)
        if is_complete or each.name == command:
            module = each.load()
            child.epilog = with_command_name(module.EXAMPLES)
            module.configure(child)
    return parser


def add_command(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    purpose: str,
    *examples: str,
    run: Run | None = None,
    has_json: bool = False,
) -> argparse.ArgumentParser:
    """Add a command or an action to *actions*, with examples or the whole text below the help."""
    if examples and not examples[0].startswith("examples:"):
        examples = ("\n  ".join(("examples:", *examples)) + "\n",)
    child = actions.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=with_command_name("".join(examples)),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    if run is not None:
        child.set_defaults(run=run)
    if has_json:
        add_json_option(child)
    return child


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="output JSON")


def add_conversation_options(parser: argparse.ArgumentParser, source: str) -> None:
    """Add the options that select the conversation and the model."""
    parser.add_argument(
        "-c", "--continue", dest="again", action="store_true",
        help="continue the most recent conversation in this folder",
    )  # fmt: skip
    parser.add_argument("-r", "--resume", metavar="ID", help="continue this conversation")
    parser.add_argument("--model", default="", metavar="NAME", help="use this model")
    parser.add_argument(
        "--mode", choices=("plan", "workspace", "full"),
        help="permission mode of this run instead of the setting agent.approvals",
    )  # fmt: skip
    parser.add_argument(
        "--allow", action="append", default=[], metavar="RULE",
        help="allow this without asking, e.g. network or 'run: git push *'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--source", default=source, metavar="NAME", help="source label stored with the session"
    )
