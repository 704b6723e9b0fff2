"""Bare `hermes`: what this is, what is there, what can be done now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_core import human_format
from hermes_core.paths import state_db_path

if TYPE_CHECKING:
    from hermes_cli.output import Output

LATEST = 3
EXAMPLES = (
    ("hermes setup", "choose a model, in under a minute"),
    ("hermes", "on a terminal: talk to the agent; `hermes -c` goes on"),
    ("hermes sessions list", "the latest conversations"),
    ("hermes sessions show last", "read the latest one"),
    ("hermes sessions tail last --follow", "watch it grow"),
    ("hermes sessions stats", "totals"),
    ("hermes config list", "settings"),
    ("hermes doctor", "check that everything is sound"),
    ("hermes --help", "all commands"),
)


def show(out: Output) -> int:
    """Print the overview."""
    out.styled(("Hermes", "bold"), (" keeps your conversations with an AI agent.", ""))
    out.text()
    if history.exists():
        print_history(out)
    else:
        out.text(history.no_history())
        out.text("A history of hermes-agent opens as it is: set HERMES_HOME to its folder.")
    out.text()
    out.text("What you can do now:")
    indent = max(len(command) for command, _ in EXAMPLES)
    for command, purpose in EXAMPLES:
        out.styled((f"  {command:{indent}}", "cyan"), (f"  {purpose}", ""))
    return 0


def print_history(out: Output) -> None:
    """Where the history is, how much it holds, and its latest conversations."""
    with history.reading() as db:
        stats = db.stats()
        latest = db.list_sessions_rich(limit=LATEST, order_by_last_active=True)
    conversations = human_format.plural(stats["sessions"], "conversation")
    messages = human_format.plural(stats["messages"], "message")
    out.text(f"{conversations}, {messages} in {state_db_path()}")
    if latest:
        out.text()
        history.print_rows(latest, out)
