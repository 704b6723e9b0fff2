"""`hermes why`: which conversation wrote a line of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.parser import add_json_option
from hermes_conversation import origin_report

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.store import SessionDB

EXAMPLES = """\
examples:
  hermes why src/app.py:42        the conversation and the prompt that wrote line 42
  hermes why src/app.py:40-60     several lines
  hermes why src/app.py           the whole file
  hermes why src/app.py --json

Lines of all agents whose conversations are in the history are found, imported ones included. What
people wrote, and what they or a formatter changed in more than white space, is theirs.
"""
SLICE_SECONDS: Final = 0.5
NOTICE_SECONDS: Final = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("place", metavar="FILE[:LINE]", help="file, with a line or a range")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print who wrote the lines."""
    with history.open_to_complete() as db:
        place = origin_report.parse_place(arguments.place, Path.cwd())
        read_calls(db, out)
        report = origin_report.report_of(db, place)
        if arguments.json:
            out.json(
                {
                    "file": str(report.path),
                    "has_git": report.has_git,
                    "ranges": [each.as_fields() for each in report.ranges],
                }
            )
            return 0
        out.hint(origin_report.as_text(report))
        if not report.has_git:
            out.note("Without git, lines are found by their text alone.")
    return 0


def read_calls(db: SessionDB, out: CommandOutput) -> None:
    """Read the tool calls that were not read yet, with progress."""
    if db.engine.read_only:
        return
    began = time.monotonic()
    while not db.calls.fill(SLICE_SECONDS):
        done, total = db.calls.progress() or (0, 0)
        if time.monotonic() - began > NOTICE_SECONDS:
            out.progress(f"Reading tool calls: {done:,} of {total:,} conversations")
    out.progress("")
