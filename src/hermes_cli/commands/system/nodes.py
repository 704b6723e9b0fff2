"""`hermes nodes`: the machines and processes that use the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes nodes
  hermes nodes --json
  hermes nodes release attic
"""
RELEASE_EXAMPLES: Final = "examples:\n  hermes nodes release attic\n"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_json_option(parser)
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    release_parser = add_command(
        actions, "release", "let other machines answer the chats of a retired machine",
        RELEASE_EXAMPLES, run=release,
    )  # fmt: skip
    release_parser.add_argument("name", metavar="NAME", help="machine, as shown by `hermes nodes`")


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print who is there, what each holds, and when it was seen."""
    with history.open_for_reading() as db:
        nodes = db.nodes.all()
    if arguments.json:
        out.json([node._asdict() for node in nodes])
        return 0
    if not nodes:
        out.text("No processes are registered yet. A process registers when it writes.")
    for node in nodes:
        state = "alive" if node.is_alive else "dead"
        connected = f"  connected to {', '.join(node.platforms)}" if node.platforms else ""
        held = f"{human_format.plural(node.turns, 'turn')}, {node.claims} claimed"
        seen = f"seen {max(0.0, node.seconds_since_seen):.0f} s ago"
        out.text(f"{node.name}  process {node.pid}  {state}  {held}  {seen}{connected}")
    return 0


def release(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Release the chats that are bound to a folder of a machine."""
    if not history_exists():
        raise UsageError("No history yet.")
    with SessionDB(is_recovering=False) as db:
        count = db.nodes.release(arguments.name)
    if not count:
        raise UsageError(f"No chat is bound to a folder of {arguments.name}.")
    out.text(f"{human_format.plural(count, 'chat')} released; any machine answers now.")
    return 0
