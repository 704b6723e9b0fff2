"""What the gateway asks of a store of places, be it ours or another put in its place.

These functions are the only code that reaches for a store's inner names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.config import Platform
from gateway.session import SessionStore

if TYPE_CHECKING:
    from gateway.routing.entries import SessionEntry
    from gateway.routing.sources import SessionSource
    from hermes_state import SessionDB


def platform_of(entry: SessionEntry) -> str:
    """The platform's name, from the entry or from its key."""
    if isinstance(entry.platform, Platform):
        return entry.platform.value
    parts = entry.session_key.split(":")
    return parts[2] if len(parts) > 2 else "unknown"


def keeps_boundaries(store: Any) -> SessionDB | None:
    """The database in which a store's boundaries are rows; None where they are not."""
    return store._db if isinstance(store, SessionStore) else None


def entry_of(store: Any, source: SessionSource) -> SessionEntry | None:
    """What is noted about the place a message came from."""
    store._ensure_loaded()
    with store._lock:
        found: SessionEntry | None = store._entries.get(store._generate_session_key(source))
        return found


def expired_entries(store: Any) -> list[SessionEntry]:
    """Conversations that are over by policy and were not ended yet."""
    store._ensure_loaded()
    with store._lock:
        entries = list(store._entries.values())
    return [
        one
        for one in entries
        if not one.expiry_finalized and not one.suspended and store._is_session_expired(one)
    ]


def mark_finalized(store: Any, entry: SessionEntry) -> None:
    """An expired conversation was ended."""
    if isinstance(store, SessionStore):
        store.finalize_expired(entry)
        return
    with store._lock:
        entry.expiry_finalized = True
        store._save()
