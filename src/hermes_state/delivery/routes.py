"""Routes from places to conversations, changed in the same transaction as the conversation.

A place is identified by its canonical key, so that no two places share a route. The older
session key, which may be ambiguous, is stored too and is unique.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import SessionNotFoundError
from hermes_core.hooks import BoundaryKind
from hermes_state.delivery import chats
from hermes_state.delivery.rows import read_object
from hermes_state.engine import process_identity
from hermes_state.messages import edits
from hermes_state.messages.rows import decode_json
from hermes_state.repository import Repository
from hermes_state.sessions import labels
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.rows import StoredRoute
    from hermes_state.engine.transaction import Tx
    from hermes_state.engine.values import SqlValue

SELECT_ROUTES = (
    "SELECT place, session_key, session_id, updated_at, entry FROM hermes_route ORDER BY place"
)
SELECT_ROUTE = (
    "SELECT place, session_key, session_id, updated_at, entry FROM hermes_route WHERE place = ?"
)
SELECT_ROUTE_OF_KEY = """
    SELECT place, session_key, session_id, updated_at, entry FROM hermes_route
    WHERE session_key = ?
"""
UPSERT_ROUTE = """
    INSERT INTO hermes_route (place, session_key, session_id, updated_at, entry)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (place) DO UPDATE SET session_id = excluded.session_id,
        updated_at = excluded.updated_at, entry = excluded.entry
"""
INSERT_ROUTE = """
    INSERT INTO hermes_route (place, session_key, session_id, updated_at, entry)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
# Has no effect if the place has another conversation meanwhile, or none: its conversation was
# deleted.
UPDATE_ROUTE = """
    UPDATE hermes_route SET updated_at = ?, entry = ? WHERE place = ? AND session_id = ?
"""
IS_IN_TRASH = "SELECT 1 FROM hermes_trash WHERE session_id = ?"
DELETE_ROUTE = "DELETE FROM hermes_route WHERE place = ?"
PLACE_COLUMNS: Final = ("session_key", "chat_id", "chat_type", "thread_id")
COUNT_ROUTES = "SELECT count(*) FROM hermes_route"
FOREIGN_ROUTES = "SELECT session_key, entry_json FROM gateway_routing"


class Route(NamedTuple):
    """The conversation of a place; `entry` holds further data of the gateway."""

    place: str
    session_key: str
    session_id: str
    updated_at: float
    entry: StoredRoute

    def row(self) -> tuple[SqlValue, ...]:
        """The values of the table row."""
        return self.place, self.session_key, self.session_id, self.updated_at, self._entry_text()

    def update(self) -> tuple[SqlValue, ...]:
        """The values of `UPDATE_ROUTE`."""
        return self.updated_at, self._entry_text(), self.place, self.session_id

    def _entry_text(self) -> str:
        return json.dumps(self.entry, ensure_ascii=True)


def _route(row: tuple[Any, ...]) -> Route:
    return Route(row[0], row[1], row[2], row[3], read_object(row[4]))


class RouteRepository(Repository):
    """Routes from places to conversations."""

    def all(self) -> list[Route]:
        """All routes."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_ROUTES))
        return [_route(row) for row in rows]

    def get(self, place: str) -> Route | None:
        """The route of a place."""
        row = self.engine.read(lambda reader: reader.row(SELECT_ROUTE, (place,)))
        return None if row is None else _route(row)

    def of_key(self, session_key: str) -> Route | None:
        """The route with a session key."""
        row = self.engine.read(lambda reader: reader.row(SELECT_ROUTE_OF_KEY, (session_key,)))
        return None if row is None else _route(row)

    def count(self) -> int:
        """Number of routes."""
        return int(self.engine.read(lambda reader: reader.value(COUNT_ROUTES)))

    def of_the_original(self) -> JsonObject:
        """Routes that a gateway of hermes-agent stored in this file, by key."""
        if "gateway_routing" not in self.engine.columns.tables:
            return {}
        rows = self.engine.read(lambda reader: reader.rows(FOREIGN_ROUTES))
        entries = {key: decode_json(text) for key, text in rows}
        return {key: entry for key, entry in entries.items() if isinstance(entry, dict)}

    def put_soon(self, route: Route) -> None:
        """Update a route with the next commit, e.g. the time of its last message."""
        row = route.update()
        self.engine.write_soon(lambda tx: tx.run(UPDATE_ROUTE, row), "update a route")

    def put(self, route: Route) -> None:
        """Update a route without changing its conversation."""
        self.engine.write(lambda tx: tx.run(UPDATE_ROUTE, route.update()))

    def add(self, route: Route) -> None:
        """Store the route of an older gateway, unless its place has one."""
        self.engine.write(lambda tx: tx.run(INSERT_ROUTE, route.row()))

    def begin(
        self,
        route: Route,
        source: str,
        facts: Mapping[str, SqlValue],
        *,
        only_if_free: bool = False,
    ) -> bool:
        """Route a place to a conversation, which is created or reopened in the same transaction.

        False, and nothing is changed, if the place must be free and another process has given it a
        conversation meanwhile.
        """

        def begin(tx: Tx) -> bool:
            if only_if_free and tx.row(SELECT_ROUTE, (route.place,)) is not None:
                return False
            if not sessions.create(tx, route.session_id, {"source": source, **facts}):
                sessions.reopen(tx, self.ids.new(), route.session_id)
            self._point(tx, route)
            return True

        return self.engine.write(begin)

    def reopen(self, route: Route, source: str, facts: Mapping[str, SqlValue]) -> bool:
        """Reopen the conversation of a place; False if it was deleted.

        Its row is missing where the route comes from the file of an older gateway.
        """

        def reopen(tx: Tx) -> bool:
            if tx.value(IS_IN_TRASH, (route.session_id,)) is not None:
                tx.execute(DELETE_ROUTE, (route.place,))  # deleted by an older release
                return False
            if not tx.execute(UPDATE_ROUTE, route.update()).rowcount:
                return False
            sessions.create(tx, route.session_id, {"source": source, **facts})
            sessions.reopen(tx, self.ids.new(), route.session_id)
            process_identity.clear_participants(tx, route.session_id)
            return True

        return self.engine.write(reopen)

    def move(
        self,
        route: Route,
        old_session_id: str,
        reason: str,
        source: str,
        facts: Mapping[str, SqlValue],
        mark: str = "",
        *,
        ends_old: bool = True,
    ) -> None:
        """Route a place to another conversation, in one transaction with the end of the old one.

        Without *ends_old*, the conversation that the place had stays open: it was handed over.
        """

        def move(tx: Tx) -> None:
            new = _require_untrashed(tx, route.session_id)
            if mark:
                chats.mark(tx, mark)
            sessions.create(tx, new, {"source": source, **facts})
            sessions.switch(tx, self.ids, old_session_id, new, reason, ends_old=ends_old)
            if reason == "handoff":
                _assign(tx, new, facts)
            self._point(tx, route)

        self.engine.write(move)

    def adopt(self, route: Route, facts: Mapping[str, SqlValue]) -> None:
        """Route a place without a conversation to one that was handed over to it."""

        def adopt(tx: Tx) -> None:
            new = _require_untrashed(tx, route.session_id)
            sessions.require(tx, new)
            _assign(tx, new, facts)
            sessions.reopen(tx, self.ids.new(), new)
            sessions.announce(
                tx, self.ids.new(), new, BoundaryKind.HANDOFF, "handoff", new_session_id=new
            )
            self._point(tx, route)

        self.engine.write(adopt)

    def branch(self, route: Route, old_session_id: str, title: str, mark: str) -> None:
        """Route a place to a copy of its conversation, which ends; in one transaction."""

        def branch(tx: Tx) -> None:
            chats.mark(tx, mark)
            edits.branch(tx, old_session_id, route.session_id, None)
            if title:
                labels.set_title(tx, route.session_id, title, labels.USER)
            edits.announce_branch(tx, self.ids, old_session_id, route.session_id, is_switched=True)
            self._point(tx, route)

        self.engine.write(branch)

    def begin_branch(
        self,
        route: Route,
        old_session_id: str,
        through_message_id: int,
        facts: Mapping[str, SqlValue],
    ) -> None:
        """Route a place to a copy of the beginning of another place's conversation."""

        def begin_branch(tx: Tx) -> None:
            old = _require_untrashed(tx, old_session_id)
            edits.branch(tx, old, route.session_id, through_message_id)
            _assign(tx, route.session_id, facts)
            edits.announce_branch(tx, self.ids, old, route.session_id, is_switched=False)
            self._point(tx, route)

        self.engine.write(begin_branch)

    def _point(self, tx: Tx, route: Route) -> None:
        # Without an owner, the conversation stays open if the gateway dies between turns.
        process_identity.clear_participants(tx, route.session_id)
        tx.execute(UPSERT_ROUTE, route.row())

    def drop(self, routes: Iterable[Route], reason: str = "pruned") -> int:
        """Delete routes; their conversations are ended and kept. Returns their number."""
        routes_with_events = [(route, self.ids.new()) for route in routes]

        def drop(tx: Tx) -> int:
            count = 0
            for route, event in routes_with_events:
                count += tx.execute(DELETE_ROUTE, (route.place,)).rowcount
                sessions.end(tx, event, route.session_id, reason)
            return count

        return self.engine.write(drop)


def _assign(tx: Tx, session_id: str, facts: Mapping[str, SqlValue]) -> None:
    """Make a conversation one of the chat that it was handed over to."""
    for name in PLACE_COLUMNS:
        sessions.set_fact(tx, session_id, name, facts.get(name))


def _require_untrashed(tx: Tx, session_id: str) -> str:
    """The ID of a conversation; SessionNotFoundError if it was deleted."""
    if tx.value(IS_IN_TRASH, (session_id,)) is not None:
        raise SessionNotFoundError(f"conversation {session_id} was deleted")
    return session_id
