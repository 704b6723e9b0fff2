"""`hermes sessions`: manage conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions import changes, export, search
from hermes_cli.filters import add_filters, parse_non_negative, parse_positive, session_filter
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.upkeep.statistics import StoreStatistics

EXAMPLES = """\
examples:
  hermes sessions list --source telegram --limit 5
  hermes sessions show last
  hermes sessions tail 20260301 --follow
  hermes sessions stats --json

ID is a session ID, a title, a prefix of either, or `last`.
"""
NO_STATS: dict[str, object] = {
    "sessions": 0, "messages": 0, "tool_calls": 0, "by_source": {}, "open_sessions": 0,
    "trashed": 0, "first_started_at": None, "last_active": None, "database_bytes": 0,
    "wal_bytes": 0, "input_tokens": 0, "output_tokens": 0, "estimated_cost_usd": 0.0,
}  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _configure_list(actions)
    _configure_show(actions)
    _configure_tail(actions)
    purpose = "search all messages, in your own words"
    examples = search.EXAMPLES.replace("hermes search", "hermes sessions search")
    search.configure(add_command(actions, "search", purpose, examples))
    search.configure_browse(actions)
    changes.configure(actions)
    export.configure(actions)
    export.configure_import(actions)
    changes.configure_upkeep(actions)
    add_command(
        actions, "stats", "count conversations, messages, tokens and bytes",
        "hermes sessions stats", "hermes sessions stats --json", run=print_stats, has_json=True,
    )  # fmt: skip


def _configure_list(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions, "list", "list conversations, most recently active first", "hermes sessions list",
        "hermes sessions list --all --json", run=print_list,
    )  # fmt: skip
    add_filters(parser)
    parser.add_argument(
        "--limit", type=parse_positive, default=20, help="maximum number (default: 20)"
    )
    parser.add_argument("--all", action="store_true", help="no limit")
    parser.add_argument("--archived", action="store_true", help="include archived conversations")
    add_json_option(parser)


def _configure_show(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions, "show", "print one conversation as a transcript", "hermes sessions show last",
        "hermes sessions show Trip --full", run=_show,
    )  # fmt: skip
    parser.add_argument("id", metavar="ID", help="session ID, title, a prefix of either, or `last`")
    parser.add_argument("--full", action="store_true", help="do not shorten long tool output")
    parser.add_argument("--inactive", action="store_true", help="include undone messages")
    parser.add_argument(
        "--around", type=parse_positive, metavar="MESSAGE", help="only the messages around this one"
    )
    add_json_option(parser)


def _configure_tail(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions, "tail", "print the end of a conversation and follow it",
        "hermes sessions tail last -n 3", "hermes sessions tail last -f", run=_tail,
    )  # fmt: skip
    parser.add_argument("id", metavar="ID", help="session ID, title, a prefix of either, or `last`")
    parser.add_argument("-n", "--lines", dest="count", type=parse_non_negative, default=10,
                        metavar="N", help="number of messages (default: 10)")  # fmt: skip
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new messages")
    parser.add_argument("--full", action="store_true", help="do not shorten long tool output")
    parser.add_argument("--json", action="store_true", help="output one JSON object per line")


def _show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    from hermes_cli.commands.sessions.show import show  # noqa: PLC0415 - for this action only

    return show(arguments, out)


def _tail(arguments: argparse.Namespace, out: CommandOutput) -> int:
    from hermes_cli.commands.sessions.show import tail  # noqa: PLC0415 - for this action only

    return tail(arguments, out)


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print conversations, most recently active first."""
    if not history.exists():
        return history.print_none(arguments, out, [])
    with history.open_for_reading() as db:
        rows = db.lists.sessions(
            **session_filter(arguments),
            limit=-1 if arguments.all else arguments.limit + 1,
            order_by_last_active=True,
            include_archived=arguments.archived,
        )
        has_more = not arguments.all and len(rows) > arguments.limit
        rows = rows[: arguments.limit] if has_more else rows
        if arguments.json:
            out.json([history.listed_fields(row) for row in rows])
        elif rows:
            history.print_rows(rows, out)
            if has_more and out.is_terminal:
                out.text(f"The {len(rows)} most recent; --limit N or --all shows more.", "dim")
        else:
            out.text("No matching conversations.")
        history.finish_indexing(db, out)
    return 0


def print_stats(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print totals of the history."""
    if not history.exists():
        return history.print_none(arguments, out, NO_STATS)
    with history.open_for_reading() as db:
        stats = db.statistics.stats()
        conversations = db.lists.session_count(include_archived=True, exclude_children=True)
    if arguments.json:
        out.json({"conversations": conversations, **stats.as_dict()})
        return 0
    out.pairs(_stat_lines(stats, conversations))
    out.text()
    columns = (
        TableColumn("source"),
        TableColumn("sessions", right=True),
        TableColumn("stored messages", right=True),
    )
    by_source = sorted(stats.by_source.items(), key=lambda item: -item[1].sessions)
    out.table(
        columns,
        [
            (source, human_format.number(each.sessions), human_format.number(each.messages))
            for source, each in by_source
        ],
    )
    return 0


def _cost_text(stats: StoreStatistics) -> str:
    cost = f"${stats.estimated_cost_usd or 0:,.2f}"
    if not stats.unpriced_sessions:
        return cost
    unknown = human_format.plural(stats.unpriced_sessions, "session")
    return f"{cost}; unknown for {unknown} of models without a known price"


def _stat_lines(stats: StoreStatistics, conversations: int) -> list[tuple[str, str]]:
    number, size = human_format.number, human_format.size
    return [
        ("conversations", number(conversations)),
        ("sessions", f"{number(stats.sessions)} ({number(stats.open_sessions)} open)"),
        ("in the trash", number(stats.trashed)),
        ("stored messages", number(stats.messages)),
        ("tool calls", number(stats.tool_calls)),
        ("tokens", f"{number(stats.input_tokens)} input, {number(stats.output_tokens)} output"),
        ("cost", _cost_text(stats)),
        ("first", human_format.local(stats.first_started_at)),
        ("last active", human_format.local(stats.last_active)),
        ("on disk", f"{size(stats.database_bytes)} + {size(stats.wal_bytes)} log"),
    ]
