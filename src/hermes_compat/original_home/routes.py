"""Routes of the gateway of hermes-agent in another folder: which chat has which conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from gateway.routing import routes_file, sources
from hermes_compat.original_home.home import ItemState, MoveItem, read_json
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_state.imports.original_history import FILE_NAME, OriginalHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.routing.sources import SessionEntry
    from hermes_compat.original_home.home import MoveContext
    from hermes_core.json_values import JsonObject
    from hermes_state.imports.original_history import OriginalSession

T = TypeVar("T")
KIND: Final = "route"
FOLDER: Final = "sessions"
IN_PLACE: Final = "read when the gateway starts"


def plan_routes(context: MoveContext) -> Iterator[MoveItem]:
    """The chats whose conversation can be continued here."""
    path = context.home.path / FOLDER / routes_file.FILE_NAME
    if context.home.is_in_place:
        if path.exists():
            yield MoveItem(KIND, routes_file.FILE_NAME, ItemState.HERE, IN_PLACE)
        return
    problem = read_json(path).problem
    if problem:
        yield MoveItem(KIND, routes_file.FILE_NAME, ItemState.SKIP, problem)
    known = {route.session_key for route in context.db.routes.all()}
    entries = {entry.session_key: entry for entry in _entries(context)}
    coming = _coming_sessions(context) if context.is_plan and entries else set()
    missing = []
    for entry in entries.values():
        if entry.session_key in known:
            yield MoveItem(KIND, entry.session_key, ItemState.HERE, "the chat has a route here")
        elif entry.session_id in coming or context.db.sessions.find(entry.session_id):
            yield _item(context, entry)
        else:
            missing.append(entry.session_key)
    if missing:
        what = human_format.plural(len(missing), "chat")
        yield MoveItem(KIND, what, ItemState.SKIP, "its conversation is not in the history")


def _entries(context: MoveContext) -> Iterator[SessionEntry]:
    """The entries of the file, then those of the database, which are newer."""
    path = context.home.path / FOLDER / routes_file.FILE_NAME
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


def _item(context: MoveContext, entry: SessionEntry) -> MoveItem:
    def add() -> None:
        entry.place = entry.place or sources.key_of_entry(entry)
        context.db.routes.add(sources.to_route(entry))

    mark = f"route:{entry.session_key}:{entry.session_id}"
    detail = f"to conversation {entry.session_id}"
    return context.once(MoveItem(KIND, entry.session_key, ItemState.TAKE, detail, add, mark))
