"""Conversations, exports, dates of achievements and profiles of hermes-agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from gateway.routing import routes_file, sources
from hermes_compat.original_home.home import ItemState, MoveItem, read_json
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.json_values import JsonObject, JsonValue, object_in
from hermes_import.importer import AgentImport, ImportOptions
from hermes_import.registry import SourceRegistry
from hermes_state.imports.original_history import FILE_NAME, OriginalHistory
from hermes_state.imports.repository import ORIGINAL_AGENT
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.routing.sources import SessionEntry
    from hermes_compat.original_home.home import MoveContext
    from hermes_import.importer import Progress, SourceReport
    from hermes_import.registry import FoundHistory
    from hermes_state.imports.original_history import OriginalSession


EXPORTS: Final = ("*.jsonl", "exports/*.jsonl", "sessions/*.jsonl")
ACHIEVEMENT_FILES: Final = (
    "plugin-data/hermes-achievements/state.json",
    "plugins/hermes-achievements/state.json",
)
IN_PLACE: Final = "stays in state.db, which both programs use"


class HistoryMover:
    """Imports the conversations of a home."""

    def __init__(self, on_progress: Callable[[Progress], object] | None = None) -> None:
        self._on_progress = on_progress

    def __call__(self, context: MoveContext) -> Iterator[MoveItem]:
        """The history in `state.db`, then exports."""
        database = context.home.path / "state.db"
        is_used = context.home.is_in_place and not store_url(database)
        if is_used and database.exists():
            count = context.db.lists.session_count()
            what = human_format.plural(count, "conversation")
            yield MoveItem("history", what, ItemState.HERE, IN_PLACE)
        elif not is_used:
            yield from self._history(context)
        for pattern in EXPORTS:
            for path in sorted(context.home.path.glob(pattern)):
                yield from self._export(context, str(path))

    def _history(self, context: MoveContext) -> Iterator[MoveItem]:
        try:
            found = SourceRegistry().found_at(ORIGINAL_AGENT, context.home.path)
        except UsageError:
            return
        try:
            new = _unread(context, found)
        except UsageError as error:
            yield MoveItem("history", "state.db", ItemState.SKIP, str(error))
            return
        if not new:
            yield MoveItem("history", "state.db", ItemState.HERE, "nothing new")
            return

        def run() -> str:
            return _outcome(self._run(context, found, is_dry_run=False))

        detail = f"{human_format.plural(new, 'conversation')}, new or changed"
        yield MoveItem("history", "state.db", ItemState.TAKE, detail, run)

    def _export(self, context: MoveContext, path: str) -> Iterator[MoveItem]:
        source = SourceRegistry().get("hermes-export")
        try:
            found = SourceRegistry().recognize(path)
        except UsageError:
            return
        if found.source.name == source.name:
            yield self._export_item(context, found, path.rpartition("/")[2])

    def _export_item(self, context: MoveContext, found: FoundHistory, name: str) -> MoveItem:
        report = self._run(context, found, is_dry_run=True)
        if report.new or report.messages or report.failures:

            def run() -> str:
                return _outcome(self._run(context, found, is_dry_run=False))

            return MoveItem("export", name, ItemState.TAKE, _outcome(report), run)
        detail = f"{report.taken} already in the history" if report.taken else "nothing new"
        return MoveItem("export", name, ItemState.HERE, detail)

    def _run(self, context: MoveContext, found: FoundHistory, *, is_dry_run: bool) -> SourceReport:
        options = ImportOptions(is_dry_run=is_dry_run)
        return AgentImport(context.db, found.source, options, self._on_progress).run(found.units())


def _unread(context: MoveContext, found: FoundHistory) -> int:
    """Number of conversations that were not read yet, or were written to since."""
    known = context.db.imports.units(found.source.name)
    return sum(
        unit.unit_id not in known or known[unit.unit_id].revision != unit.revision
        for unit in found.units()
    )


def _outcome(report: SourceReport) -> str:
    parts = [
        human_format.plural(report.new, "conversation"),
        human_format.plural(report.messages, "message"),
    ]
    if report.extended:
        parts.append(f"{report.extended} extended")
    if report.taken:
        parts.append(f"{report.taken} already in the history")
    if report.deleted:
        parts.append(f"{report.deleted} deleted here")
    parts += [f"not read: {path}: {error}" for path, error in report.failures.items()]
    return ", ".join(parts)


def plan_achievements(context: MoveContext) -> Iterator[MoveItem]:
    """The dates of unlocked achievements, which are listed beside ours."""
    records = achievements.service().records
    for name in ACHIEVEMENT_FILES:
        path = context.home.path / name
        if not path.is_file():
            continue
        content = read_json(path)
        if content.problem:
            yield MoveItem("achievements", path.name, ItemState.SKIP, content.problem)
            continue
        unlocks = _unlocks(content.value)
        what = human_format.plural(len(unlocks), "date")
        if context.home.is_in_place and path.parent == achievements.folder_path():
            yield MoveItem("achievements", what, ItemState.HERE, "read where they are")
        elif unlocks and not unlocks.keys() - records.state()["inherited"].keys():
            yield MoveItem("achievements", what, ItemState.HERE, "recorded here")
        elif unlocks:
            detail = "recorded as inherited, with their dates"

            def inherit(dates: JsonObject = unlocks) -> None:
                records.inherit(dates)

            yield MoveItem("achievements", what, ItemState.TAKE, detail, inherit)


def _unlocks(state: JsonValue) -> JsonObject:
    """The unlocks of the other program in a state file; ours have tiers."""
    if not isinstance(state, dict):
        return {}
    dated = {
        name: unlock
        for name, unlock in object_in(state, "unlocks").items()
        if isinstance(unlock, dict) and "tiers" not in unlock
    }
    return {**object_in(state, "inherited"), **dated}


def plan_profiles(context: MoveContext) -> Iterator[MoveItem]:
    """The profiles, which are taken over only when the user asks for it."""
    for profile in context.home.profiles():
        advice = f"take it with --profile {profile.profile}, or all with --all-profiles"
        yield MoveItem("profile", profile.profile, ItemState.SKIP, advice)


def plan_others(context: MoveContext) -> Iterator[MoveItem]:
    """Folders with code of hermes-agent, which is not taken over."""
    if context.home.is_in_place:
        return
    reasons = {
        "plugins": "plugins run code: copy the folder and run hermes plugins enable NAME",
        "hooks": "gateway hooks are not available here; write a plugin",
    }
    for folder, reason in reasons.items():
        path = context.home.path / folder
        names = sorted(item.name for item in path.iterdir()) if path.is_dir() else []
        names = [name for name in names if name != "hermes-achievements"]
        if names:
            yield MoveItem(folder, ", ".join(names), ItemState.SKIP, reason)


T = TypeVar("T")
ROUTE: Final = "route"
ROUTES_FOLDER: Final = "sessions"
READ_AT_START: Final = "read when the gateway starts"


def plan_routes(context: MoveContext) -> Iterator[MoveItem]:
    """The chats whose conversation can be continued here."""
    path = context.home.path / ROUTES_FOLDER / routes_file.FILE_NAME
    if context.home.is_in_place:
        if path.exists():
            yield MoveItem(ROUTE, routes_file.FILE_NAME, ItemState.HERE, READ_AT_START)
        return
    problem = read_json(path).problem
    if problem:
        yield MoveItem(ROUTE, routes_file.FILE_NAME, ItemState.SKIP, problem)
    known = {route.session_key for route in context.db.routes.all()}
    entries = {entry.session_key: entry for entry in _entries(context)}
    coming = _coming_sessions(context) if context.is_plan and entries else set()
    missing = []
    for entry in entries.values():
        if entry.session_key in known:
            yield MoveItem(ROUTE, entry.session_key, ItemState.HERE, "the chat has a route here")
        elif entry.session_id in coming or context.db.sessions.find(entry.session_id):
            yield _route_item(context, entry)
        else:
            missing.append(entry.session_key)
    if missing:
        what = human_format.plural(len(missing), "chat")
        yield MoveItem(ROUTE, what, ItemState.SKIP, "its conversation is not in the history")


def _entries(context: MoveContext) -> Iterator[SessionEntry]:
    """The entries of the file, then those of the database, which are newer."""
    path = context.home.path / ROUTES_FOLDER / routes_file.FILE_NAME
    content = read_json(path).value
    if isinstance(content, dict):
        yield from routes_file.entries(content, str(path))
    without: dict[str, object] = {}
    stored = _of_database(context, OriginalHistory.routes, without)
    yield from routes_file.entries(cast("JsonObject", stored), FILE_NAME)


def _coming_sessions(context: MoveContext) -> set[str]:
    """The conversations that are taken over before the routes."""
    without: list[OriginalSession] = []
    sessions = _of_database(context, OriginalHistory.sessions, without)
    return {session.session_id for session in sessions}


def _of_database(context: MoveContext, read: Callable[[OriginalHistory], T], without: T) -> T:
    """What *read* finds in the database of the home; *without* one, or if it is unreadable."""
    database = context.home.path / FILE_NAME
    if not database.is_file():
        return without
    try:
        with OriginalHistory(database) as history:
            return read(history)
    except UsageError:  # reported with the history
        return without


def _route_item(context: MoveContext, entry: SessionEntry) -> MoveItem:
    def add() -> None:
        entry.place = entry.place or sources.key_of_entry(entry)
        context.db.routes.add(sources.to_route(entry))

    mark = f"route:{entry.session_key}:{entry.session_id}"
    detail = f"to conversation {entry.session_id}"
    return context.once(MoveItem(ROUTE, entry.session_key, ItemState.TAKE, detail, add, mark))
