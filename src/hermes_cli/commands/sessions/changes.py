"""`hermes sessions`: actions that change conversations, and maintenance of the database."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions.search import finish_indexing
from hermes_cli.filters import parse_age_days
from hermes_cli.output import TableColumn, confirm
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.paths import state_db_path

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_cli.parser import Run
    from hermes_state.salvage.recovery import SalvageReport
    from hermes_state.sessions.retention import PruneCandidate
    from hermes_state.store import SessionDB

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - its only name


TRASH_COLUMNS = (
    TableColumn("id", style="cyan"),
    TableColumn("deleted"),
    TableColumn("why", optional=True),
    TableColumn("conversation", flexible=True),
)


def configure(actions: Actions) -> None:
    """Add the actions."""
    rename_parser = _add_single(actions, "rename", "set the title of a conversation", rename,
                         "hermes sessions rename last Trip to Oslo")  # fmt: skip
    rename_parser.add_argument("title", metavar="TITLE", nargs="+", help="new title")
    for name, purpose, run in (
        ("pin", "protect conversations from pruning", pin),
        ("unpin", "remove the protection from pruning", unpin),
        ("archive", "hide conversations from lists", archive),
        ("unarchive", "show archived conversations again", unarchive),
    ):
        _add_multiple(actions, name, purpose, run, f"hermes sessions {name} last")
    delete_parser = _add_multiple(actions, "delete", "move conversations to the trash", delete,
                          "hermes sessions delete 20260301_1030\n"
                          "  hermes sessions delete last --purge --yes")  # fmt: skip
    delete_parser.add_argument(
        "--purge", action="store_true", help="delete permanently (cannot be undone)"
    )
    _add_yes(delete_parser)
    restore_parser = add_command(
        actions, "restore", "restore conversations from the trash, or list it",
        "hermes sessions restore", "hermes sessions restore 20260301_1030", run=restore,
    )  # fmt: skip
    restore_parser.add_argument(
        "ids", metavar="ID", nargs="*", help="session ID (omit to list the trash)"
    )
    add_json_option(restore_parser)
    _configure_prune(actions)


def _add_single(
    actions: Actions, name: str, purpose: str, run: Run, example: str
) -> argparse.ArgumentParser:
    parser = add_command(actions, name, purpose, example, run=run)
    parser.add_argument("id", metavar="ID", help="session ID, title, a prefix of either, or `last`")
    add_json_option(parser)
    return parser


def _add_multiple(
    actions: Actions, name: str, purpose: str, run: Run, example: str
) -> argparse.ArgumentParser:
    parser = add_command(actions, name, purpose, example, run=run)
    parser.add_argument("ids", metavar="ID", nargs="+", help="session IDs, titles or `last`")
    add_json_option(parser)
    return parser


def _add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def _configure_prune(actions: Actions) -> None:
    parser = add_command(
        actions,
        "prune",
        "move inactive conversations to the trash",
        "examples:\n  hermes sessions prune --older-than 90d\n"
        "  hermes sessions prune --older-than 26w --source cron --yes\n\n"
        "Without --yes, only a preview is printed. Pinned and running conversations are kept;\n"
        "`hermes sessions restore` restores pruned ones.\n",
        run=prune,
    )
    parser.add_argument("--older-than", type=parse_age_days, default=90, metavar="AGE",
                        help="days without activity: 90, 90d, 12w (default: 90)")  # fmt: skip
    parser.add_argument("--source", help="filter by source: cli, telegram, …")
    _add_yes(parser)
    add_json_option(parser)


def rename(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Set a title."""
    with history.open_for_writing() as db:
        session_id = _resolve_untrashed(db, arguments.id)
        title = " ".join(arguments.title)
        if not title.strip():
            raise UsageError("A title needs at least one visible character.")
        db.titles.set_session_title(session_id, title)
        _report(out, arguments, "renamed", [session_id])
    return 0


def pin(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Pin."""
    return _change_each(
        arguments, out, "pinned", lambda db, item: db.sessions.set_session_pinned(item)
    )


def unpin(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Unpin."""
    return _change_each(
        arguments, out, "unpinned", lambda db, item: db.sessions.set_session_pinned(item, False)
    )


def archive(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Archive."""
    return _change_each(
        arguments, out, "archived", lambda db, item: db.sessions.set_session_archived(item)
    )


def unarchive(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Unarchive."""
    return _change_each(
        arguments, out, "unarchived", lambda db, item: db.sessions.set_session_archived(item, False)
    )


def _change_each(
    arguments: argparse.Namespace, out: CommandOutput, word: str, change: history.Change
) -> int:
    with history.open_for_writing() as db:
        ids = [_resolve_untrashed(db, text) for text in arguments.ids]
        for session_id in ids:
            change(db, session_id)
        _report(out, arguments, word, ids)
    return 0


def delete(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Move to the trash, or delete permanently."""
    with history.open_for_writing() as db:
        find = db.lookup.resolve if arguments.purge else functools.partial(_resolve_untrashed, db)
        ids = [find(text) for text in arguments.ids]
        what = human_format.plural(len(ids), "conversation")
        question = f"Move {what} to the trash?"
        if arguments.purge:
            question = f"Delete {what} permanently? This cannot be undone."
        if not confirm(question, out, is_confirmed=arguments.yes):
            return 1
        for session_id in ids:
            if arguments.purge:
                db.trash.purge(session_id)
            else:
                db.trash.delete_session(session_id)
        history.deliver_events(db)
        _report(out, arguments, "purged" if arguments.purge else "deleted", ids)
    return 0


def restore(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Restore from the trash, or list it."""
    with history.open_for_writing() as db:
        if not arguments.ids:
            _print_trash(db, arguments, out)
            return 0
        ids = [_resolve_trashed(db, text) for text in arguments.ids]
        for session_id in ids:
            db.trash.restore(session_id)
        history.deliver_events(db)
        _report(out, arguments, "restored", ids)
    return 0


def _resolve_untrashed(db: SessionDB, text: str) -> str:
    """Resolve a session; raise UsageError if it is in the trash."""
    session_id = db.lookup.resolve(text)
    if any(row.session_id == session_id for row in db.trash.content()):
        raise UsageError(
            f"{session_id} is in the trash. Restore it with `hermes sessions restore {session_id}`."
        )
    return session_id


def _resolve_trashed(db: SessionDB, text: str) -> str:
    """Resolve a session in the trash by ID, title, or a prefix of either."""
    rows = db.trash.content()
    if text == "last" and rows:
        return max(rows, key=lambda row: row.trashed_at or 0).session_id
    matches = [
        row.session_id
        for row in rows
        if row.session_id.startswith(text) or (row.title or "").startswith(text)
    ]
    if not matches:
        raise UsageError(
            f"No session in the trash has the ID or title '{text}'. "
            "`hermes sessions restore` lists it."
        )
    if len(matches) > 1 and text not in matches:
        raise UsageError(f"Several sessions in the trash match '{text}': {', '.join(matches)}")
    return text if text in matches else matches[0]


def _print_trash(db: SessionDB, arguments: argparse.Namespace, out: CommandOutput) -> None:
    rows = db.trash.content()
    if arguments.json:
        out.json([row._asdict() for row in rows])
        return
    if not rows:
        out.text("The trash is empty.")
        return
    out.table(
        TRASH_COLUMNS,
        [
            (
                row.session_id,
                human_format.date(row.trashed_at),
                row.reason,
                history.display_name(row.title, row.preview),
            )
            for row in rows
        ],
    )


def prune(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print what would be pruned; prune with --yes."""
    with history.open_for_writing() as db:
        plan = db.retention.plan(arguments.older_than, arguments.source)
        result: dict[str, int] = {}
        for _row, reason in plan.spared:
            result[reason] = result.get(reason, 0) + 1
        if arguments.yes:
            db.retention.prune_sessions(arguments.older_than, arguments.source)
            history.deliver_events(db)
        if arguments.json:
            ids = [row.session.id for row in plan.due]
            out.json({"pruned": ids, "spared": result, "is_dry_run": not arguments.yes})
            return 0
        _print_plan(plan.due, result, arguments, out)
    return 0


def _print_plan(
    due: list[PruneCandidate],
    kept: dict[str, int],
    arguments: argparse.Namespace,
    out: CommandOutput,
) -> None:
    verb = "Moved" if arguments.yes else "Would move"
    out.text(f"{verb} {human_format.plural(len(due), 'conversation')} to the trash.")
    if due and not arguments.yes:
        history.print_rows(due, out)
    for reason, count in sorted(kept.items()):
        out.text(f"Kept {human_format.number(count)}: {reason}.", "dim")
    if due and not arguments.yes:
        out.text("Nothing was changed. Pass --yes to prune.", "bold")


def _report(out: CommandOutput, arguments: argparse.Namespace, word: str, ids: list[str]) -> None:
    if arguments.json:
        out.json({word: ids})
    else:
        for session_id in ids:
            out.text(f"{session_id} {word}")


def configure_upkeep(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions."""
    add_command(
        actions, "optimize", "reclaim disk space and finish indexing", "hermes sessions optimize",
        run=optimize, has_json=True,
    )  # fmt: skip
    add_command(
        actions, "repair", "rebuild indexes and other derived data",
        "examples:\n  hermes sessions repair\n\nMessages are never changed.\n", run=repair,
        has_json=True,
    )  # fmt: skip
    salvage_parser = add_command(
        actions,
        "salvage",
        "recover the readable part of a damaged history",
        "examples:\n"
        "  hermes sessions salvage\n"
        "  hermes sessions salvage --from broken.db --to recovered.db\n\n"
        "The damaged file is kept as state.db.damaged-DATE. With --to, only that file\n"
        "is written and nothing is replaced.\n",
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
        history.compute_vectors(db, out)
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
