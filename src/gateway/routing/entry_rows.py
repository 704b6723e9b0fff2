"""Routing entries as rows of the store, and back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gateway.routing.entries import SessionEntry
from hermes_core.errors import KeyFormatError
from hermes_core.legacy_session_keys import parse_legacy
from hermes_state.delivery.routes import Route

if TYPE_CHECKING:
    from datetime import datetime

    from hermes_state.engine.values import SqlValue

log = logging.getLogger(__name__)


def place_of(entry: SessionEntry) -> str:
    """The canonical key of an entry that only has the text form; else the text itself."""
    try:
        certain = parse_legacy(entry.session_key).certain
    except KeyFormatError:
        certain = None
    return certain.encode() if certain else entry.session_key


def to_route(entry: SessionEntry) -> Route:
    """The route of an entry."""
    return Route(
        entry.place or place_of(entry),
        entry.session_key,
        entry.session_id,
        entry.updated_at.timestamp(),
        entry.to_dict(),
    )


def to_entry(route: Route) -> SessionEntry | None:
    """The entry of a route; None if it is unreadable."""
    try:
        entry = SessionEntry.from_dict(route.entry)
    except (TypeError, ValueError, KeyError) as error:
        log.warning("route %s ignored: %s", route.session_key, error)
        return None
    entry.place = route.place
    return entry


def successor(entry: SessionEntry, session_id: str, now: datetime) -> SessionEntry:
    """The entry of the same chat with another conversation."""
    return SessionEntry(
        entry.session_key,
        session_id,
        now,
        now,
        origin=entry.origin,
        display_name=entry.display_name,
        platform=entry.platform,
        chat_type=entry.chat_type,
        prev_session_id=entry.session_id,
        place=entry.place,
    )


def row_fields(entry: SessionEntry) -> dict[str, SqlValue]:
    """The columns of a conversation that describe its chat."""
    origin = entry.origin
    return {
        "session_key": entry.session_key,
        "chat_type": entry.chat_type,
        "display_name": entry.display_name,
        "chat_id": origin.chat_id if origin else None,
        "thread_id": origin.thread_id if origin else None,
        "user_id": origin.user_id if origin else None,
    }
