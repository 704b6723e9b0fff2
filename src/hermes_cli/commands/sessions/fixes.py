"""`hermes fixes`: what worked when a command failed before."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions.search import NOTHING_FOUND
from hermes_cli.commands.sessions.why import read_calls
from hermes_cli.filters import parse_positive
from hermes_cli.parser import add_json_option
from hermes_conversation import known_fixes
from hermes_conversation.history_scope import ConversationHistory

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes fixes "npm error code ERESOLVE"
  npm ci 2>&1 | hermes fixes -
  hermes fixes "ModuleNotFoundError: No module named 'yaml'" --json

Searches the commands of all agents in the history that failed with this error, and shows what was
done until the command worked. Paths, numbers, hashes and times in the error do not matter. Exit
code 1: nothing was found.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "error", metavar="ERROR", nargs="+", help="an error or an output; - reads standard input"
    )
    parser.add_argument(
        "--limit", type=parse_positive, default=10, help="maximum number (default: 10)"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print what worked."""
    if not history.exists():
        history.print_none(arguments, out, [])
        return NOTHING_FOUND
    text = sys.stdin.read() if arguments.error == ["-"] else " ".join(arguments.error)
    with history.open_to_complete() as db:
        read_calls(db, out)
        found = known_fixes.find_fixes(db, ConversationHistory(db), text, arguments.limit)
    if arguments.json:
        out.json([known_fixes.as_fields(fix) for fix in found])
    elif found:
        out.text("\n\n".join(map(known_fixes.as_text, found)))
    else:
        out.text("No earlier failure with this error and a command that then worked.")
    return 0 if found else NOTHING_FOUND
