"""`hermes sessions` search and browse: search all messages, and browse conversations by keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_cli import history, output_settings
from hermes_cli.filters import TIME_FORMATS, add_filters, parse_positive, parse_time, session_filter
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes_cli.output import CommandOutput
    from hermes_state.search.hits import FoundMessage
    from hermes_state.store import SessionDB


EXAMPLES = """\
examples:
  hermes sessions search docker compose
  hermes sessions search '"connection refused" -redis' --since 1w
  hermes sessions search 图片 --source telegram
  hermes sessions search ermissio --inside
  hermes sessions search Traceback --tools --sort rank

All words must occur in a message, in any order and case. Use "quotes" for a phrase, prefix*
for word beginnings, `one OR two` for alternatives, and -word to exclude (quote the query then).
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(actions, "search", "search all messages", EXAMPLES, run=search)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words to search for")
    parser.add_argument("--sort", choices=("newest", "oldest", "rank"), default="newest",
                        help="order: newest (default), oldest or best match first")  # fmt: skip
    parser.add_argument("--role", choices=("user", "assistant", "tool", "system", "hook"),
                        help="filter by role")  # fmt: skip
    parser.add_argument("--source", help="filter by source: cli, telegram, …")
    parser.add_argument("--session", metavar="ID", help="search only this conversation")
    parser.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"sent since: {TIME_FORMATS}"
    )
    parser.add_argument(
        "--until", type=parse_time, metavar="WHEN", help=f"sent before: {TIME_FORMATS}"
    )
    parser.add_argument("--tools", action="store_true", help="include tool calls and results")
    parser.add_argument("--inside", action="store_true", help="match parts of words")
    parser.add_argument("--undone", action="store_true", help="include undone messages")
    parser.add_argument(
        "--limit", type=parse_positive, default=20, help="maximum number (default: 20)"
    )
    add_json_option(parser)


def search(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print what was found."""
    if not history.exists():
        return history.print_none(arguments, out, [])
    with history.open_for_reading() as db:
        hits = db.search.find(
            " ".join(arguments.query),
            source_filter=[arguments.source] if arguments.source else None,
            role_filter=[arguments.role] if arguments.role else None,
            limit=arguments.limit,
            sort=arguments.sort,
            include_inactive=arguments.undone,
            session_id=db.lookup.resolve(arguments.session) if arguments.session else None,
            since=arguments.since,
            until=arguments.until,
            with_tools=arguments.tools,
            inside_words=arguments.inside,
        )
        if arguments.json:
            out.json([hit.as_dict() for hit in hits])
        else:
            print_hits(db, hits, out)
        out.flush()
        finish_indexing(db, out, with_tools=arguments.tools or arguments.role == "tool")
    return 0


def print_hits(db: SessionDB, hits: list[FoundMessage], out: CommandOutput) -> None:
    """Print the hits by conversation, with the found words highlighted."""
    if not hits:
        out.text("No matching messages.")
    last = None
    for hit in hits:
        if hit.session_id != last:
            last = hit.session_id
            title = db.titles.get_session_title(last) or ""
            out.styled((last, "cyan"), (f"  {hit.source}", "dim"), (f"  {title}", "bold"))
        out.styled(
            (f"  {human_format.local(hit.timestamp)}  {hit.role}  ", "dim"),
            *_pieces(hit.snippet_text, hit.offsets),
        )


def _pieces(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    pieces, end = [], 0
    for start, stop in offsets:
        pieces += [(text[end:start], ""), (text[start:stop], "bold yellow")]
        end = stop
    return [*pieces, (text[end:], "")]


def finish_indexing(
    db: SessionDB, out: CommandOutput, *, with_tools: bool = False, is_required: bool = False
) -> None:
    """Finish the search index of an older history, with progress; Ctrl+C is safe.

    Without a terminal this is done only if it *is_required*, with a note from time to time.
    """
    progress = db.search.progress(with_tools=with_tools)
    report = out.progress if out.is_watched else out.note
    seconds = history.indexing_seconds(out)
    while progress is not None:
        report(_indexing_text(*progress))
        if not (out.is_watched or is_required) or db.search.fill(seconds, with_tools=with_tools):
            break
        before, progress = progress, db.search.progress(with_tools=with_tools)
        if progress == before:
            if is_required:
                out.note("The search index cannot be written now. Run the command again later.")
            break
    out.progress("")


def _indexing_text(done: int, total: int) -> str:
    return f"Indexing: {100 * done // max(total, 1)} % (results are already complete)"


CANCELLED_EXIT_CODE = 130
BROWSE_EXAMPLES = """\
examples:
  hermes sessions browse
  hermes sessions show "$(hermes sessions browse)"
  hermes sessions browse --source telegram --since 1w --json

Type to filter the list; Enter prints the ID of the selected conversation; F1 shows the keys.
"""


def configure_browse(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    purpose = "browse and search conversations interactively"
    parser = add_command(actions, "browse", purpose, BROWSE_EXAMPLES, run=browse)
    add_filters(parser)
    parser.add_argument("--limit", type=parse_positive, help="maximum number (default: no limit)")
    add_json_option(parser)


def browse(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the ID of the selected conversation."""
    # The TUI toolkit takes longer to load than most commands take to run.
    from hermes_cli.commands.sessions.browser import BrowserApp, BrowserSessions  # noqa: PLC0415
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
