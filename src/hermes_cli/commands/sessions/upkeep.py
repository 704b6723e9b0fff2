"""`hermes sessions` optimize and repair: maintenance of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions.search import finish_indexing
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions."""
    optimize_parser = add_command(
        actions,
        "optimize",
        "reclaim disk space and finish indexing",
        examples="examples:\n  hermes sessions optimize\n",
        run=optimize,
    )
    add_json_option(optimize_parser)
    repair_parser = add_command(
        actions,
        "repair",
        "rebuild indexes and other derived data",
        examples="examples:\n  hermes sessions repair\n\nMessages are never changed.\n",
        run=repair,
    )
    add_json_option(repair_parser)


def optimize(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Compact the file."""
    with history.open_for_writing() as db:
        before = db.stats()["database_bytes"]
        history.finish_indexing(db, out)
        finish_indexing(db, out)
        out.progress("Removing leftovers…")
        db.optimize_fts()
        forgotten = db.clean_up()
        out.progress("Compacting the database… (other programs wait meanwhile)")
        db.vacuum()
        out.progress("")
        after = db.stats()["database_bytes"]
    if arguments.json:
        out.json({"bytes_before": before, "bytes_after": after, "leftovers": forgotten})
    else:
        out.text(f"{human_format.size(before)} before, {human_format.size(after)} now")
    return 0


def repair(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Index everything again."""
    with history.open_for_writing() as db:
        history.finish_indexing(db, out)
        sessions = db.repair_index()
        db.rebuild_search()
        while not db.fill_search(0.5) and (progress := db.search_progress()) is not None:
            out.progress(f"Indexing: {100 * progress[0] // max(progress[1], 1)} %")
        out.progress("")
        is_whole = db.search_progress() is None
    if arguments.json:
        out.json({"sessions_indexed_anew": sessions, "search_is_whole": is_whole})
    else:
        out.text(
            "Rebuilt the search index "
            f"({human_format.plural(sessions, 'session')} needed re-indexing)."
        )
    return 0
