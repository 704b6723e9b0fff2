"""`hermes sessions` optimize, repair and salvage: maintenance of the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions.search import finish_indexing
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.paths import state_db_path

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.salvage.recovery import SalvageReport


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
    salvage_parser = add_command(
        actions,
        "salvage",
        "recover the readable part of a damaged history",
        examples=(
            "examples:\n"
            "  hermes sessions salvage\n"
            "  hermes sessions salvage --from broken.db --to recovered.db\n\n"
            "The damaged file is kept as state.db.damaged-DATE. With --to, only that file\n"
            "is written and nothing is replaced.\n"
        ),
        run=salvage,
    )
    salvage_parser.add_argument(
        "--from", dest="source", metavar="FILE", help="damaged file (default: the history)"
    )
    salvage_parser.add_argument(
        "--to",
        dest="target",
        metavar="FILE",
        help="new file to write (default: replace the history)",
    )
    add_json_option(salvage_parser)


def optimize(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Compact the file."""
    with history.open_for_writing() as db:
        before = db.statistics.stats().database_bytes
        history.finish_indexing(db, out, is_required=True)
        finish_indexing(db, out, is_required=True)
        out.progress("Removing leftovers…")
        db.statistics.optimize_fts()
        forgotten = db.statistics.clean_up()
        out.progress("Compacting the database… (other programs have to wait)")
        db.statistics.vacuum()
        out.progress("")
        after = db.statistics.stats().database_bytes
    if arguments.json:
        out.json({"bytes_before": before, "bytes_after": after, "leftovers": forgotten})
    else:
        out.text(f"{human_format.size(before)} before, {human_format.size(after)} now")
    return 0


def repair(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Index everything again."""
    with history.open_for_writing() as db:
        history.finish_indexing(db, out, is_required=True)
        sessions = db.statistics.repair_index()
        db.search.rebuild()
        finish_indexing(db, out, is_required=True)
        is_whole = db.search.progress() is None
    if arguments.json:
        out.json({"sessions_indexed_anew": sessions, "search_is_whole": is_whole})
    else:
        out.text(
            "Rebuilt the search index "
            f"({human_format.plural(sessions, 'session')} needed re-indexing)."
        )
    return 0


def salvage(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Recover a damaged history."""
    from hermes_state.salvage import recovery  # noqa: PLC0415 - rarely needed

    path = Path(arguments.source) if arguments.source else state_db_path()
    if not path.exists():
        raise UsageError(f"{path} does not exist.")
    damage = recovery.damage_of(path)
    if damage is None and not arguments.target:
        out.json({"damage": None}) if arguments.json else out.text(f"{path} is not damaged.")
        return 0
    if arguments.target:
        target = Path(arguments.target)
        if target.exists():
            raise UsageError(f"{target} exists. Choose a new file.")
        report, kept = recovery.salvage(path, target, out.progress), path
    else:
        target = path
        report, kept = recovery.replace_damaged(path, out.progress)
    out.progress("")
    if arguments.json:
        paths = {"path": str(target), "damaged_path": str(kept), "damage": damage}
        out.json({**paths, **report._asdict()})
        return 0
    _print_salvage(report, target, kept, damage, out)
    return 0


def _print_salvage(
    report: SalvageReport, target: Path, kept: Path, damage: str | None, out: CommandOutput
) -> None:
    number = human_format.number
    out.text(f"Damage: {damage or 'none found'}")
    out.text(
        f"Recovered {number(report.sessions)} conversations and {number(report.messages)} messages "
        f"to {target}."
    )
    if report.added_sessions:
        out.text(
            f"{number(report.added_sessions)} conversations lost their title and other metadata."
        )
    if not report.has_free_list:
        out.text("The file header is lost: messages that were deleted may appear again.")
    out.text(f"The damaged file is {kept}.")
