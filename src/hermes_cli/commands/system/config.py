"""`hermes config`: read and change settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_core.config.file import ConfigFile, SettingEntry
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import find_setting
from hermes_core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_core.config.schema import Setting

EXAMPLES = """\
examples:
  hermes config list
  hermes config get display.color
  hermes config set display.color never
  hermes config set keys.openai            (prompts; or: < FILE)
  hermes config unset display.color
  hermes config check

Precedence: environment variable, config.yaml (secrets: .env), default.
The values of secrets are never printed.
"""
STANDARD_INPUT = "-"
COLUMNS = (
    TableColumn("name", style="cyan"),
    TableColumn("value", flexible=True),
    TableColumn("from", style="dim"),
    TableColumn("meaning", flexible=True, optional=True),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    purposes = {
        "get": ("print the value of a setting", "hermes config get display.color", get),
        "set": ("change a setting", "hermes config set display.color never", set_value),
        "unset": ("reset a setting to its default", "hermes config unset display.color", unset),
        "list": ("list all settings and their values", "hermes config list --json", print_list),
        "path": ("print the path of config.yaml", "hermes config path", print_path),
        "check": ("validate the settings", "hermes config check", check),
    }
    for name, (purpose, example, run) in purposes.items():
        action = add_command(actions, name, purpose, example, run=run)
        if name in {"get", "set", "unset"}:
            action.add_argument("name", metavar="NAME", help="setting, e.g. display.color")
        if name == "set":
            help_text = "new value (default, or -: one line of standard input)"
            action.add_argument("value", metavar="VALUE", nargs="?", help=help_text)
        if name in {"get", "list", "check"}:
            add_json_option(action)


def get(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the effective value."""
    entry = ConfigFile.of_home().entry(arguments.name)
    if arguments.json:
        out.json(entry._asdict())
    else:
        out.text(entry.text)
    return 0


def set_value(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Save a value."""
    setting = find_setting(SETTINGS, arguments.name)
    config = ConfigFile.of_home()
    text = _new_text(setting, arguments.value)
    written = config.set(setting.name, text)
    entry = config.entry(setting.name)
    if entry.source == "environment":
        out.note(f"The environment variable {setting.variable} overrides the saved setting.")
    out.text(f"{setting.name} = {SettingEntry(setting.name, written, entry.source).text}")
    return 0


def unset(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Reset a setting to its default."""
    config = ConfigFile.of_home()
    had_value = config.unset(arguments.name)
    entry = config.entry(arguments.name)
    remark = "" if had_value else " (was not set)"
    out.text(f"{entry.name} = {entry.text}{remark}")
    return 0


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print all settings; invalid ones are reported after the others."""
    config = ConfigFile.of_home()
    entries: list[SettingEntry] = []
    mistakes: list[str] = []
    for setting in SETTINGS:
        try:
            entries.append(config.entry(setting.name))
        except ConfigError as error:
            mistakes.append(str(error))
    if arguments.json:
        out.json([entry._asdict() for entry in entries])
    else:
        meanings = {setting.name: setting.help for setting in SETTINGS}
        rows = [(e.name, e.text, e.source, meanings[e.name]) for e in entries]
        out.table(COLUMNS, rows)
    for mistake in dict.fromkeys(mistakes):
        out.error(mistake)
    return 2 if mistakes else 0


def print_path(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the path of config.yaml."""
    out.text(str(ConfigFile.of_home().path))
    return 0


def check(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print invalid and unknown settings; exit code 1 if one is invalid."""
    problems = ConfigFile.of_home().check()
    has_error = any(problem.is_error for problem in problems)
    if arguments.json:
        out.json({"ok": not has_error, "problems": [each._asdict() for each in problems]})
        return int(has_error)
    for problem in problems:
        sign, style = ("✗", "red") if problem.is_error else ("!", "yellow")
        out.styled((f"{sign} ", style), (problem.message, ""))
    if not problems:
        out.text("Configuration is valid.")
    return int(has_error)


def _new_text(setting: Setting, argument: str | None) -> str:
    """The new value; a secret only from a prompt or stdin, since others can read arguments."""
    if argument is None or argument == STANDARD_INPUT:
        text = _read_value(setting)
        if not text:
            raise UsageError(
                f"No value given; {setting.name} was not changed. Add the value to the command, or "
                f"reset the setting: hermes config unset {setting.name}"
            )
        return text
    if setting.secret:
        raise UsageError(
            f"{setting.name} is a secret, and other users can read the arguments of a command. "
            f"Run `hermes config set {setting.name}` and enter it, or pass it on standard input."
        )
    return argument


def _read_value(setting: Setting) -> str:
    """Read a line from stdin; a secret is hidden on a terminal."""
    if setting.secret and sys.stdin.isatty():
        import getpass  # noqa: PLC0415 - rarely needed

        # "API key for OpenAI." and "Token of the Telegram bot." name what is asked for.
        return getpass.getpass(f"{setting.help.split(',')[0].rstrip('.')} (hidden): ")
    return sys.stdin.readline().rstrip("\n")
