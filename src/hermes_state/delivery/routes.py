"""Routes from places to conversations, changed in the same transaction as the conversation.

A place is identified by its canonical key, so that no two places share a route. The older
session key, which may be ambiguous, is stored too and is unique.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_core.hooks import BoundaryKind
from hermes_state.delivery import chats
from hermes_state.engine import process_identity
from hermes_state.messages.rows import decode_json
from hermes_state.repository import Repository
from hermes_state.sessions import lifecycle
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_core.json_values import JsonObject
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
# Has no effect if another node has routed the place to another conversation meanwhile.
UPDATE_ROUTE = """
    INSERT INTO hermes_route (place, session_key, session_id, updated_at, entry)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (place) DO UPDATE SET updated_at = excluded.updated_at, entry = excluded.entry
    WHERE hermes_route.session_id = excluded.session_id
"""
DELETE_ROUTE = "DELETE FROM hermes_route WHERE place = ?"
COUNT_ROUTES = "SELECT count(*) FROM hermes_route"
FOREIGN_ROUTES = "SELECT session_key, entry_json FROM gateway_routing"


class Route(NamedTuple):
    """The conversation of a place; `entry` holds further data of the gateway."""

    place: str
    session_key: str
    session_id: str
    updated_at: float
    entry: JsonObject

    def row(self) -> tuple[SqlValue, ...]:
        """The values of the table row."""
        text = json.dumps(self.entry, ensure_ascii=True)
        return self.place, self.session_key, self.session_id, self.updated_at, text


def _route(row: tuple[Any, ...]) -> Route:
    return Route(row[0], row[1], row[2], row[3], json.loads(row[4]))


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
        row = route.row()
        self.engine.write_soon(lambda tx: tx.run(UPDATE_ROUTE, row), "update a route")

    def put(self, route: Route) -> None:
        """Update a route without changing its conversation."""
        self.engine.write(lambda tx: tx.run(UPDATE_ROUTE, route.row()))

    def begin(self, route: Route, source: str, facts: Mapping[str, SqlValue]) -> None:
        """Route a place to a conversation, which is created or reopened in the same transaction."""
        event = self.ids.new()

        def begin(tx: Tx) -> None:
            self._open(tx, route, source, facts, event)

        self.engine.write(begin)

    def move(
        self,
        route: Route,
        old_session_id: str,
        reason: str,
        source: str,
        facts: Mapping[str, SqlValue],
        mark: str = "",
    ) -> None:
        """End the conversation of a place and route it to another one, in one transaction."""
        events = (self.ids.new(), self.ids.new(), self.ids.new())

        def move(tx: Tx) -> None:
            new = route.session_id
            if mark:
                chats.mark(tx, mark)
            is_ended_now = old_session_id != new and sessions.end(
                tx, events[0], old_session_id, reason, new_session_id=new
            )
            self._open(tx, route, source, facts, events[1])
            if not is_ended_now:
                kind = lifecycle.KIND_OF_REASON.get(reason, BoundaryKind.NEW)
                sessions.announce(
                    tx,
                    events[2],
                    new,
                    kind,
                    reason,
                    old_session_id=old_session_id,
                    new_session_id=new,
                )

        self.engine.write(move)

    def _open(
        self, tx: Tx, route: Route, source: str, facts: Mapping[str, SqlValue], event: str
    ) -> None:
        if not sessions.create(tx, route.session_id, {"source": source, **facts}):
            sessions.reopen(tx, event, route.session_id)
        # Without an owner, the conversation stays open if the gateway dies.
        process_identity.clear_owner(tx, route.session_id)
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
