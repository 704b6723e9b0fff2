"""`hermes sessions browse`: browse and search conversations interactively."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_cli import history, output_settings
from hermes_cli.filters import add_filters, parse_positive, session_filter
from hermes_cli.parser import add_command, add_json_option
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

CANCELLED_EXIT_CODE = 130
EXAMPLES = """\
examples:
  hermes sessions browse
  hermes sessions show "$(hermes sessions browse)"
  hermes sessions browse --source telegram --since 1w --json

Type to filter the list; Enter prints the ID of the selected conversation; F1 shows the keys.
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(
        actions, "browse", "browse and search conversations interactively", examples=EXAMPLES,
        run=browse,
    )  # fmt: skip
    add_filters(parser)
    parser.add_argument("--limit", type=parse_positive, help="maximum number (default: no limit)")
    add_json_option(parser)


def browse(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the ID of the selected conversation."""
    # The TUI toolkit takes longer to load than most commands take to run.
    from hermes_cli.commands.sessions.browser.app import BrowserApp  # noqa: PLC0415
    from hermes_cli.commands.sessions.browser.catalogue import BrowserSessions  # noqa: PLC0415
    from hermes_tui import terminal_driver  # noqa: PLC0415

    terminal_driver.require()
    if not history.exists():
        raise StoreUnavailableError(history.no_history_text())
    if output_settings.color_setting(out.note) == "never":
        os.environ["NO_COLOR"] = "1"  # read by the toolkit
    with history.open_for_writing() as db:
        sessions = BrowserSessions(
            db, session_filter(arguments), history.deliver_events, arguments.limit
        )
        app = BrowserApp(sessions, terminal_driver.TerminalDriver)
        row = app.run()
    if row is None:
        return app.return_code or CANCELLED_EXIT_CODE
    if arguments.json:
        out.json(history.listed_fields(row))
    else:
        out.text(row.id)
    return 0
