"""`hermes sessions browse`: pick a conversation by typing and looking."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_cli import history, output_settings
from hermes_cli.filters import add_filters, chosen
from hermes_cli.parser import add, add_json
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

LEFT = 130
EXAMPLES = """\
examples:
  hermes sessions browse
  hermes sessions show "$(hermes sessions browse)"
  hermes sessions browse --source telegram --since 1w --json

Type to filter the list; Enter prints the ID of the selected conversation; F1 shows the keys.
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add(
        actions, "browse", "browse and search conversations interactively", examples=EXAMPLES,
        run=browse,
    )  # fmt: skip
    add_filters(parser)
    add_json(parser)


def browse(arguments: argparse.Namespace, out: Output) -> int:
    """Print the id of the conversation that was picked."""
    # A toolkit for whole screens takes longer to load than most commands to run.
    from hermes_cli.commands.sessions.browser.app import Picker  # noqa: PLC0415
    from hermes_cli.commands.sessions.browser.catalogue import Conversations  # noqa: PLC0415
    from hermes_tui import terminal_driver  # noqa: PLC0415

    terminal_driver.require()
    if not history.exists():
        raise StoreUnavailableError(history.no_history())
    if output_settings.color(out.note) == "never":
        os.environ["NO_COLOR"] = "1"  # what the toolkit looks at
    with history.reading() as db:
        conversations = Conversations(db, chosen(arguments), history.announce)
        picker = Picker(conversations, terminal_driver.TerminalDriver)
        row = picker.run()
    if row is None:
        return picker.return_code or LEFT
    if arguments.json:
        out.json(history.listed(row))
    else:
        out.text(str(row["id"]))
    return 0
