"""`hermes checkpoints`: show and undo the agent's changes of files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.checkpoints.archive import CheckpointArchive
from hermes_agent.checkpoints.records import DAY_SECONDS
from hermes_agent.checkpoints.store import CheckpointCleanup
from hermes_cli.commands.chat.terminal_prompter import DIFF_STYLES
from hermes_cli.history import open_for_reading
from hermes_cli.output import TableColumn, confirm
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import file_commands
from hermes_conversation.file_history import CheckpointSelection, select_records
from hermes_core import human_format
from hermes_core.errors import StoreError, UsageError
from hermes_state.store_settings import history_exists

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.checkpoints.restore import PlannedPath
    from hermes_cli.output import CommandOutput
    from hermes_core.json_values import JsonData

EXAMPLES = """\
examples:
  hermes checkpoints list                   what turns changed in this folder
  hermes checkpoints diff 17                what checkpoint 17 changed
  hermes checkpoints restore 17             undo it, after confirmation
  hermes checkpoints restore 17 --path a.py only this file
  hermes checkpoints clean                  delete old checkpoints now
"""
COLUMNS = (
    TableColumn("NUMBER", right=True),
    TableColumn("WHEN"),
    TableColumn("FILES", right=True),
    TableColumn("CONVERSATION", optional=True),
    TableColumn("ABOUT", flexible=True),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = add_command(
        actions, "list", "list what turns changed in files", "hermes checkpoints list",
        "hermes checkpoints list --all --json", run=print_list,
    )  # fmt: skip
    listing.add_argument("--all", action="store_true", help="list all folders, not only this one")
    showing = add_command(
        actions, "diff", "show what checkpoints changed", "hermes checkpoints diff 17",
        "hermes checkpoints diff 17 18", run=print_changes,
    )  # fmt: skip
    restoring = add_command(
        actions, "restore", "restore the files that checkpoints changed",
        "hermes checkpoints restore 17 --dry-run", "hermes checkpoints restore 17 --yes --json",
        "hermes checkpoints restore 17 --force src/a.py", run=restore,
    )  # fmt: skip
    for child in (showing, restoring):
        child.add_argument("numbers", metavar="NUMBER", nargs="+", help="number of a checkpoint")
    restoring.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        help="only this file; may be repeated",
    )
    restoring.add_argument(
        "--force", action="append", default=[], metavar="PATH",
        help="overwrite this file although it was changed since; may be repeated",
    )  # fmt: skip
    restoring.add_argument("--dry-run", action="store_true", help="show what would be restored")
    restoring.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    cleaning = add_command(
        actions, "clean", "delete old checkpoints and reclaim their space",
        "hermes checkpoints clean", "hermes checkpoints clean --days 0", run=clean,
    )  # fmt: skip
    cleaning.add_argument(
        "--days", type=int, metavar="N", help="keep those of the last N days (default: the setting)"
    )
    cleaning.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for child in (listing, showing, restoring, cleaning):
        add_json_option(child)


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the checkpoints, newest first."""
    archive = CheckpointArchive.of_home()
    folder = None if arguments.all else Path.cwd()
    found = select_records(archive, lambda _record: True, folder)
    records = sorted((r for each in found for r in each.records), key=lambda r: -r.number)
    prompts = _prompts(records)
    if arguments.json:
        out.json({"checkpoints": [_as_json(r, prompts.get(r.message_id, "")) for r in records]})
        return 0
    if not records:
        where = "" if arguments.all else " of this folder"
        out.hint(f"No checkpoints{where}. The agent takes one before it changes files.", "dim")
        return 0
    now = time.time()
    out.table(COLUMNS, [_row(r, prompts.get(r.message_id, ""), now, arguments) for r in records])
    return 0


def _row(
    record: Checkpoint, prompt: str, now: float, arguments: argparse.Namespace
) -> tuple[str, ...]:
    about = file_commands.about(record, prompt)
    if arguments.all:
        about = f"{record.folder}: {about}"
    when = human_format.ago(record.started_at, now)
    return str(record.number), when, str(record.files), record.session_id, about


def _as_json(record: Checkpoint, prompt: str) -> dict[str, JsonData]:
    return {
        "number": record.number,
        "kind": record.kind,
        "folder": record.folder,
        "session_id": record.session_id,
        "message_id": record.message_id,
        "prompt": prompt,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "files": record.files,
        "interrupted": record.is_interrupted,
        "shared": record.is_shared,
        "restored": list(record.restored),
    }


def _prompts(records: Sequence[Checkpoint]) -> dict[int, str]:
    """The prompts of checkpoints, as far as the history has them."""
    if not records or not history_exists():
        return {}
    wanted = {record.message_id for record in records}
    sessions = {record.session_id for record in records}
    found: dict[int, str] = {}
    try:
        with open_for_reading() as db:
            for session_id in sessions:
                rows = db.messages.rows(session_id, include_inactive=True)
                found |= {row.id: str(row.content) for row in rows if row.id in wanted}
    except StoreError:
        return found  # the numbers are enough to restore
    return found


def _selection(arguments: argparse.Namespace) -> CheckpointSelection:
    invalid = next((word for word in arguments.numbers if not word.isdigit()), None)
    if invalid is not None:
        raise UsageError(f"Invalid number {invalid!r}. `hermes checkpoints list` shows all.")
    wanted = {int(word) for word in arguments.numbers}
    archive = CheckpointArchive.of_home()
    found = list(select_records(archive, lambda record: record.number in wanted))
    selection = CheckpointSelection(archive, found)
    missing = wanted - set(selection.numbers)
    if missing:
        raise UsageError(
            f"No checkpoint {min(missing)}. `hermes checkpoints list --all` shows all."
        )
    return selection


def print_changes(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print a unified diff."""
    selection = _selection(arguments)
    text = selection.diff()
    if arguments.json:
        out.json({"numbers": list(selection.numbers), "diff": text})
    else:
        print_diff(text, out)
    return 0


def restore(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Restore files; exit code 1 if some were refused."""
    selection = _selection(arguments)
    plan = selection.plan((*arguments.path, *arguments.force))
    if arguments.dry_run:
        return _print_plan(plan.paths, plan.diff, arguments, out)
    if not arguments.json and plan.paths:
        print_diff(plan.diff, out)
    count = human_format.plural(len(plan.paths), "file")
    is_confirmed = arguments.yes or not plan.paths
    if not confirm(f"Restore {count}?", out, is_confirmed=is_confirmed):
        return 1
    session_id = selection.records[-1].session_id
    outcome = selection.restore(session_id, arguments.path, arguments.force)
    if arguments.json:
        out.json(
            {
                "restored": outcome.restored,
                "refused": [_planned(item) for item in outcome.refused],
                "undo": list(outcome.undo_numbers),
            }
        )
    else:
        out.hint(file_commands.describe(outcome, "`hermes checkpoints restore {}`"))
    return int(bool(outcome.refused))


def _print_plan(
    paths: list[PlannedPath], diff: str, arguments: argparse.Namespace, out: CommandOutput
) -> int:
    if arguments.json:
        out.json({"files": [_planned(item) for item in paths], "diff": diff})
        return 0
    for item in paths:
        note = f" ({item.problem})" if item.problem else ""
        out.text(f"{item.name}: {item.change.kind} by the agent{note}")
    print_diff(diff, out)
    return 0


def _planned(item: PlannedPath) -> dict[str, JsonData]:
    return {
        "path": item.name,
        "change": item.change.kind,
        "problem": item.problem,
        "may_force": item.may_force,
    }


def print_diff(diff: str, out: CommandOutput) -> None:
    """Print a unified diff in colours."""
    for line in diff.splitlines():
        is_head = line.startswith(("+++", "---", "diff "))
        out.text(line, "bold" if is_head else DIFF_STYLES.get(line[:1], ""))


def clean(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Delete checkpoints that are too old or too large."""
    if arguments.days is not None and arguments.days < 0:
        raise UsageError("--days must be 0 or more.")
    archive = CheckpointArchive.of_home()
    keep = None if arguments.days is None else arguments.days * DAY_SECONDS
    if keep is not None and keep < archive.limits.keep_seconds:
        question = "Delete checkpoints that are newer than the setting checkpoints.keep_days?"
        if not confirm(question, out, is_confirmed=arguments.yes):
            return 1
    done = CheckpointCleanup(archive).run(time.time(), keep_seconds=keep)
    if arguments.json:
        out.json(done._asdict())
    else:
        removed = human_format.plural(done.removed, "checkpoint")
        out.text(
            f"Deleted {removed}, freed {human_format.size(done.freed_bytes)}; "
            f"{done.kept} left ({human_format.size(done.bytes)})."
        )
    return 0
