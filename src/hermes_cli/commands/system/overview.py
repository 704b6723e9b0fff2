"""`hermes` without a terminal: an overview of the history and the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_state.store_settings import history_place

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput

SHOWN_CONVERSATIONS = 3
EXAMPLES = (
    ("hermes setup", "configure a model provider"),
    ("hermes", "start the terminal UI; -c continues the last conversation"),
    ("hermes sessions list", "list the most recent conversations"),
    ("hermes sessions show last", "print the most recent conversation"),
    ("hermes sessions tail last --follow", "follow it as it grows"),
    ("hermes sessions stats", "count conversations, messages and tokens"),
    ("hermes config list", "list all settings"),
    ("hermes doctor", "check the installation and the history"),
    ("hermes --help", "list all commands"),
)


def show(out: CommandOutput) -> int:
    """Print the overview."""
    out.styled(("Hermes", "bold"), (" is a personal AI agent that saves every conversation.", ""))
    out.text()
    if history.exists():
        print_history(out)
    else:
        out.text(history.no_history_text())
        out.text("To use the history of hermes-agent, set HERMES_HOME to its folder.")
    out.text()
    out.text("Commands:")
    examples = [(with_command_name(f"  {item}").strip(), purpose) for item, purpose in EXAMPLES]
    indent = max(len(command) for command, _ in examples)
    for command, purpose in examples:
        out.styled((f"  {command:{indent}}", "cyan"), (f"  {purpose}", ""))
    return 0


def print_history(out: CommandOutput) -> None:
    """Print the size of the history and its latest conversations."""
    with history.open_for_reading() as db:
        stats = db.statistics.stats()
        latest = db.lists.sessions(limit=SHOWN_CONVERSATIONS, order_by_last_active=True)
    conversations = human_format.plural(stats.sessions, "conversation")
    messages = human_format.plural(stats.messages, "message")
    out.text(f"{conversations}, {messages} in {history_place()}")
    if latest:
        out.text()
        history.print_rows(latest, out)
