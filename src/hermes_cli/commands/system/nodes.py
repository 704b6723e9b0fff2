"""`hermes nodes`: the machines and processes that use the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.parser import add_json_option
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes nodes
  hermes nodes --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print who is there, what each holds, and when it was seen."""
    with history.open_for_reading() as db:
        nodes = db.nodes.all()
    if arguments.json:
        out.json([node._asdict() for node in nodes])
        return 0
    if not nodes:
        out.text("No process is registered; they register when they write.")
    for node in nodes:
        state = "alive" if node.is_alive else "dead"
        connected = f"  connected to {', '.join(node.platforms)}" if node.platforms else ""
        held = f"{human_format.plural(node.turns, 'turn')}, {node.claims} claimed"
        seen = f"seen {max(0.0, node.seconds_since_seen):.0f} s ago"
        out.text(f"{node.name}  process {node.pid}  {state}  {held}  {seen}{connected}")
    return 0
