"""`hermes import`: import conversations of other agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.imports.status import print_status
from hermes_cli.filters import TIME_FORMATS, parse_time
from hermes_cli.parser import add_json_option

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes import                            show what is on this machine, and choose
  hermes import --yes                      import all of it
  hermes import claude-code                import new conversations of one agent
  hermes import codex /mnt/old-laptop/ada  from a home folder of another machine
  hermes import hermes-agent               move from hermes-agent, settings included
  hermes import chatgpt-export.zip         from an export of a web service
  hermes import --dry-run --since 30d      show what would be imported
  hermes import --follow                   keep importing while other agents work
  hermes import --status                   show whether that works

Repeat it at any time: only new messages are imported, and what you deleted here stays deleted.
The files of other agents are never changed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "agent", nargs="?", metavar="AGENT", help="agent to import from, or a file to import"
    )
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="folder of the agent, or a home folder that contains it",
    )
    parser.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"changed since: {TIME_FORMATS}"
    )
    parser.add_argument(
        "--project", type=Path, metavar="FOLDER", help="only conversations in this folder"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be imported, change nothing"
    )
    parser.add_argument(
        "--follow", action="store_true", help="keep importing until stopped with Ctrl+C"
    )
    parser.add_argument(
        "--status", action="store_true", help="show whether a process follows other agents"
    )
    parser.add_argument(
        "--profile", metavar="NAME", help="hermes-agent: move this profile instead of the home"
    )
    parser.add_argument(
        "--all-profiles", action="store_true", help="hermes-agent: move all profiles, too"
    )
    parser.add_argument("--yes", action="store_true", help="import without asking")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import, or show what can be imported."""
    if arguments.status:
        return print_status(out, is_json=arguments.json)
    from hermes_cli.commands.imports import histories  # noqa: PLC0415 - the status does without

    return histories.run(arguments, out)
