"""`hermes tui`: talk to the agent on a whole screen."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from hermes_cli import preferences
from hermes_cli.commands import history
from hermes_cli.keeping import keep_facts
from hermes_cli.talking import Wish
from hermes_core.errors import UsageError
from hermes_state import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output
    from hermes_tui.app import HermesApp

NO_TERMINAL = (
    "the terminal UI needs a terminal, and there is none here. "
    '`hermes chat -q "…"` asks without one.'
)
EXAMPLES = """\
examples:
  hermes tui                    talk on a whole screen
  hermes tui -c                 go on with the latest conversation of this folder
  hermes tui -r 20260105_1200   go on with that one
  hermes tui --model smollm2    talk to the small built-in model

F1 shows the keys.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes tui`."""
    parser.add_argument(
        "-c", "--continue", dest="again", action="store_true",
        help="go on with the latest conversation of this folder",
    )  # fmt: skip
    parser.add_argument("-r", "--resume", metavar="ID", help="go on with this conversation")
    parser.add_argument("--model", default="", metavar="NAME", help="ask this model")
    parser.set_defaults(run=run)


def run(wishes: argparse.Namespace, out: Output) -> int:
    """Talk on a whole screen."""
    # A toolkit for whole screens takes longer to load than most commands to run.
    from hermes_cli.picker import terminal  # noqa: PLC0415
    from hermes_tui.app import HermesApp  # noqa: PLC0415
    from hermes_tui.screen_driver import ScreenDriver  # noqa: PLC0415

    try:
        terminal.require()
    except UsageError as error:
        raise UsageError(NO_TERMINAL) from error
    if preferences.color(out.note) == "never":
        os.environ["NO_COLOR"] = "1"  # what the toolkit looks at
    with SessionDB(keeper=keep_facts) as db:
        wish = Wish(
            history.chosen(db, wishes.resume, is_latest=wishes.again), wishes.model, "tui", "tui"
        )
        app = HermesApp(db, wish, ScreenDriver)
        is_there = _show(app)
        if is_there and app.live.desk.exists:
            _tell(app.live.desk.session_id, out)
    return app.return_code or 0


def _show(app: HermesApp) -> bool:
    """Show it until somebody leaves; whether the terminal is still there."""
    try:
        app.run()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False  # the window was closed, and nothing can be put back in order on it
    finally:
        app.finish()
    return True


def _tell(session_id: str, out: Output) -> None:
    """How to go on."""
    out.note(f"Go on with: hermes tui -r {session_id}\n        or: hermes chat -r {session_id}")
