"""`hermes import hermes-agent`: move from hermes-agent, with a plan first."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.schedules import original
from hermes_cli.output import TableColumn, confirm
from hermes_compat.original_home.files import plan_memories, plan_skills
from hermes_compat.original_home.home import (
    ItemState,
    MoveContext,
    MoveItem,
    OriginalHome,
    TakenMarks,
    carry_out,
    find_home,
    plan,
    plan_secrets,
)
from hermes_compat.original_home.model import plan_fallbacks, plan_model
from hermes_compat.original_home.records import (
    HistoryMover,
    plan_achievements,
    plan_others,
    plan_profiles,
    plan_routes,
)
from hermes_compat.original_home.settings import HOOK_KIND, plan_access, plan_settings
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import StoreUnavailableError, StoreUnreachableError, UsageError
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_compat.original_home.home import Mover
    from hermes_import.importer import Progress

PATIENCE_SECONDS: Final = 1.0
COLUMNS: Final = (
    TableColumn("what", style="cyan"),
    TableColumn("found", flexible=True, least=24),
    TableColumn("action"),
    TableColumn("detail", flexible=True, least=20),
)
NOTHING_TO_TAKE: Final = "Nothing to import."
ACTION_LABELS: Final = {
    ItemState.TAKE: "import",
    ItemState.HERE: "already here",
    ItemState.SKIP: "not imported",
    ItemState.TAKEN: "imported",
    ItemState.FAILED: "failed",
}
BOTH_RUN: Final = "Stop the gateway of hermes-agent before you start this one: both would answer."


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the plan, ask, and take over what it says."""
    if arguments.project or arguments.since:
        raise UsageError("--since and --project do not apply to `hermes import hermes-agent`.")
    homes = chosen_homes(arguments.path, arguments.profile, is_all=arguments.all_profiles)
    _require_writable_history(homes)
    planned = _plan(homes, out)
    is_quiet = arguments.json
    if arguments.dry_run or not _has_work(planned):
        return _finish(planned, out, is_json=is_quiet, is_dry_run=arguments.dry_run)
    if not is_quiet and not arguments.yes:
        print_items(planned, out)
    if not confirm("Import these items?", out, is_confirmed=arguments.yes):
        return 0
    done = move(homes, out)
    return _finish(done, out, is_json=is_quiet, is_dry_run=False)


def chosen_homes(
    path: Path | None, profile: str | None = None, *, is_all: bool = False
) -> list[OriginalHome]:
    """The homes to move from: the main one, a profile, or all of them."""
    home = find_home(path)
    profiles = home.profiles()
    if profile:
        chosen = [each for each in profiles if each.profile == profile]
        if not chosen:
            known = ", ".join(each.profile for each in profiles) or "none"
            raise UsageError(f"No profile {profile!r} in {home.path}. Profiles: {known}.")
        return chosen
    return [home, *profiles] if is_all else [home]


def offer(home: OriginalHome, out: CommandOutput) -> bool:
    """Offer to move at the first start; whether something was taken over."""
    out.note(f"Found settings of hermes-agent in {home.path} (hermes import hermes-agent).")
    if not confirm("Show what can be imported?", out, is_confirmed=False):
        return False
    planned = _plan([home], out)
    print_items(planned, out)
    if not _has_work(planned) or not confirm("Import these items?", out, is_confirmed=False):
        return False
    _print_result(move([home], out), out)
    return True


def move(homes: list[OriginalHome], out: CommandOutput) -> list[MoveItem]:
    """Take over everything that the plan says."""
    done: list[MoveItem] = []

    def show(item: MoveItem) -> None:
        out.progress(f"Importing: {item.kind} {item.name}")

    with SessionDB(purge_hook=keep_facts) as db:
        for home in homes:
            context = MoveContext(home, db, ConfigFile.of_home(), TakenMarks(db))
            done += carry_out(context, _movers(homes, out), show)
    out.progress("")
    return done


def _plan(homes: list[OriginalHome], out: CommandOutput) -> list[MoveItem]:
    """What would be taken over; nothing is changed."""
    with _planning_history() as db:
        config = ConfigFile.of_home()
        items = [
            item
            for home in homes
            for item in plan(
                MoveContext(home, db, config, TakenMarks(db), is_plan=True), _movers(homes, out)
            )
        ]
    out.progress("")
    return items


@contextmanager
def _planning_history() -> Iterator[SessionDB]:
    """The history, read-only; an empty one if there is none yet."""
    current = _readable_history()
    if current is not None:
        with current as db:
            yield db
        return
    with (
        tempfile.TemporaryDirectory(prefix="hermes-") as folder,
        SessionDB(Path(folder) / "state.db") as db,
    ):
        yield db


def _readable_history() -> SessionDB | None:
    """The history, read-only; None if there is none yet, also in a database."""
    if not history_exists():
        return None
    try:
        return SessionDB(read_only=True)
    except StoreUnreachableError:
        raise
    except StoreUnavailableError:
        return None


def _movers(homes: list[OriginalHome], out: CommandOutput) -> list[Mover]:
    """What is taken over, in order: settings first, routes after their conversations."""
    began = time.monotonic()

    def show(progress: Progress) -> None:
        if time.monotonic() - began > PATIENCE_SECONDS:
            done, total = map(human_format.size, (progress.read_bytes, progress.of_bytes))
            out.progress(f"Reading the history: {done} of {total}")

    movers: list[Mover] = [
        plan_model, plan_fallbacks, plan_secrets, plan_settings, plan_memories, plan_skills,
        HistoryMover(show), plan_routes, plan_access, plan_jobs, plan_achievements, plan_others,
    ]  # fmt: skip
    return movers if len(homes) > 1 else [*movers, plan_profiles]


def plan_jobs(context: MoveContext) -> Iterator[MoveItem]:
    """The scheduled jobs."""
    path = context.home.path / original.FILE
    try:
        jobs = original.read_jobs(path)
    except UsageError as error:
        yield MoveItem("job", path.name, ItemState.SKIP, str(error))
        return
    for job in jobs:
        yield _job_item(context, job)


def _job_item(context: MoveContext, job: original.OriginalJob) -> MoveItem:
    if context.db.schedules.is_imported(job.origin):
        return MoveItem("job", job.name, ItemState.HERE, "already imported")
    if job.problem:
        return MoveItem("job", job.name, ItemState.SKIP, job.problem)

    def take() -> str:
        done = original.take_over(context.db, job, is_dry=False)
        if done.startswith(original.NOT_IMPORTED):
            raise UsageError(done)
        return done

    return MoveItem("job", job.name, ItemState.TAKE, job.schedule, take)


def _require_writable_history(homes: list[OriginalHome]) -> None:
    """Raise UsageError for a history in place that is too old to be written to."""
    current = _readable_history() if any(home.is_in_place for home in homes) else None
    if current is None:
        return
    with current as db:
        missing = db.engine.database.columns.missing_names()
    if missing:
        raise UsageError(
            f"The history in {homes[0].path} has an old schema (without {missing[0]}) and can only "
            "be read there. Move into a new folder: "
            f"HERMES_HOME=~/.hermes-new hermes import hermes-agent {homes[0].path}"
        )


def _has_work(items: list[MoveItem]) -> bool:
    return any(item.state is ItemState.TAKE for item in items)


def _finish(items: list[MoveItem], out: CommandOutput, *, is_json: bool, is_dry_run: bool) -> int:
    if is_json:
        facts = [
            {"kind": each.kind, "name": each.name, "state": each.state.value, "detail": each.detail}
            for each in items
        ]
        out.json({"dry_run": is_dry_run, "items": facts})
    else:
        _print_result(items, out)
    return int(any(item.state is ItemState.FAILED for item in items))


def _print_result(items: list[MoveItem], out: CommandOutput) -> None:
    print_items(items, out)
    for item in items:
        if item.kind == HOOK_KIND:
            out.error(f"Hooks not imported ({item.name}): {item.detail}.")
    taken = sum(item.state is ItemState.TAKEN for item in items)
    if taken:
        out.text(f"Imported {human_format.plural(taken, 'item')}.")
        if any(item.kind == "key" and "TOKEN" in item.name for item in items):
            out.note(BOTH_RUN)
        if any(item.kind == "model" and item.state is ItemState.TAKEN for item in items):
            out.hint("Test the model: hermes models test")
    elif not _has_work(items):
        out.text(NOTHING_TO_TAKE)


def print_items(items: list[MoveItem], out: CommandOutput) -> None:
    """Print a plan or a report: what is taken first."""
    order = [ItemState.TAKEN, ItemState.FAILED, *ItemState]
    shown = sorted(items, key=lambda item: order.index(item.state))
    rows = [
        (each.kind, each.name, ACTION_LABELS[each.state], with_command_name(each.detail))
        for each in shown
    ]
    out.table(COLUMNS, rows)
