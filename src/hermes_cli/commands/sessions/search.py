"""`hermes sessions` search and browse: search all messages, and browse conversations by keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_cli import history, output_settings
from hermes_cli.filters import TIME_FORMATS, add_filters, parse_positive, parse_time, session_filter
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import StoreUnavailableError, UsageError
from hermes_state.search.hits import ANY_WORD, AS_WRITTEN, BY_MEANING
from hermes_state.search.repository import SearchOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes_cli.output import CommandOutput
    from hermes_state.search.hits import FoundMessage, SearchAnswer
    from hermes_state.store import SessionDB


EXAMPLES = """\
examples:
  hermes search how did we fix the reconnecting websocket
  hermes search docker compose
  hermes search '"connection refused" -redis' --since 1w
  hermes search 图片 --source telegram
  hermes search ermissio --inside
  hermes search Traceback --tools --sort rank

Three words or more are answered by rank: messages that contain any of them in any form. One or two
words are listed by time; they must occur unless nothing contains them. "A phrase", prefix*,
`one OR two` and -word mean exactly that (quote the query then). Exit code 1: nothing was found.
"""
NOTHING_FOUND = 1
MANY_MESSAGES = 20_000  # a question that reads them takes longer than a moment
NO_MODEL = (
    "No model for search by meaning. Run `hermes models get minilm` (105 MB), or name an endpoint "
    "with `hermes config set search.embeddings URL#MODEL`."
)
SHOWN_HITS = 3  # of a conversation, if they are ranked


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(run=search)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="a question, or words to find")
    parser.add_argument(
        "--sort", choices=("newest", "oldest", "rank"),
        help="order (default: rank for a question, newest for one or two words)",
    )  # fmt: skip
    parser.add_argument("--exact", action="store_true",
                        help="only messages that contain all words as written")  # fmt: skip
    parser.add_argument(
        "--meaning", action="store_true",
        help="messages with a similar meaning first (`hermes models get minilm`)",
    )  # fmt: skip
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
        history.print_none(arguments, out, [])
        return NOTHING_FOUND
    query = " ".join(arguments.query)
    with history.open_for_reading() as db:
        if arguments.meaning and not db.search.meaning.name:
            raise UsageError(NO_MODEL)
        options = SearchOptions(
            sources=(arguments.source,) if arguments.source else (),
            roles=(arguments.role,) if arguments.role else (),
            session_id=db.lookup.resolve(arguments.session) if arguments.session else None,
            since=arguments.since,
            until=arguments.until,
            with_tools=arguments.tools,
            include_inactive=arguments.undone,
            inside_words=arguments.inside,
            is_exact=arguments.exact,
            by_meaning=arguments.meaning,
            sort=arguments.sort,
            limit=arguments.limit,
        )
        fill_first(db, out)
        answer = db.search.answer(query, options)
        if arguments.json:
            out.json([hit.as_dict() for hit in answer.hits])
        elif answer.hits:
            print_answer(db, answer, out)
        else:
            out.text("No matching messages.")
        if not answer.hits:
            out.note(what_to_try(options))
        out.flush()
        finish_indexing(db, out, with_tools=arguments.tools or arguments.role == "tool")
    return 0 if answer.hits else NOTHING_FOUND


def fill_first(db: SessionDB, out: CommandOutput) -> None:
    """Build the index with progress if a question would have to read many messages without it."""
    progress = db.search.progress()
    if progress is not None and progress[1] - progress[0] > MANY_MESSAGES:
        finish_indexing(db, out, is_required=True)


def what_to_try(options: SearchOptions) -> str:
    """A suggestion after a search that found nothing."""
    filters = (*options.sources, *options.roles, options.session_id, options.since, options.until)
    if any(filters):
        return "Remove a filter to find more."
    if options.is_exact:
        return "Without --exact, messages with some of the words are found, too."
    if not options.with_tools:
        return "`hermes search --tools …` includes tool calls and results, --inside parts of words."
    return "Try other words, or --inside for parts of words."


def print_answer(db: SessionDB, answer: SearchAnswer, out: CommandOutput) -> None:
    """Print the messages by conversation, with the found words highlighted."""
    for correction in answer.corrections:
        out.text(f"No message contains “{correction.written}”: used “{correction.used}”.", "dim")
    if line := step_text(answer):
        out.text(line, "dim")
    groups: dict[str, list[FoundMessage]] = {}
    for hit in answer.hits:
        groups.setdefault(hit.session_id, []).append(hit)
    for session_id, hits in groups.items():
        title = db.titles.get_session_title(session_id) or ""
        out.styled((session_id, "cyan"), (f"  {hits[0].source}", "dim"), (f"  {title}", "bold"))
        shown = hits[:SHOWN_HITS] if answer.sort == "rank" else hits
        for hit in shown:
            count = f"  {hit.words_found} of {len(answer.words)}" if hit.words_found else ""
            out.styled(
                (f"  {human_format.local(hit.timestamp)}  {hit.role}{count}  ", "dim"),
                *_pieces(hit.snippet_text, hit.offsets),
            )
        if len(hits) > len(shown):
            out.text(f"  and {human_format.plural(len(hits) - len(shown), 'more message')}", "dim")
    if answer.sort == "rank" and out.is_terminal:
        best = answer.hits[0]
        out.hint(f"Read on: hermes sessions show {best.session_id} --around {best.id}", "dim")


def step_text(answer: SearchAnswer) -> str:
    """How the messages were found, unless they contain all words as written."""
    words = ", ".join(answer.words)
    if answer.step == ANY_WORD:
        return f"Best matches first, for any of: {words} (--sort newest for the latest first)"
    if answer.step == BY_MEANING:
        return "Messages with a similar meaning first"
    return "" if answer.step == AS_WRITTEN else f"No exact match; found by {answer.step}."


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
    return f"Indexing: {100 * done // max(total, 1)} %"


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
