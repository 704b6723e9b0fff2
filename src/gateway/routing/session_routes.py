"""The routing table: chats and the conversation of each.

Routes are rows of the store, changed in the same transaction as their conversations.
`sessions.json` is exported periodically for humans and older tools; it is imported once, if an
older gateway has left one.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.routing import routes_file, sources
from gateway.routing.sources import (
    SessionEntry,
    expiry_reason,
    format_legacy,
    local_now,
    place_of,
    user_zone,
)
from hermes_core.errors import SessionNotFoundError
from hermes_core.ids import new_gateway_session_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from zoneinfo import ZoneInfo

    from gateway.config import GatewayConfig
    from gateway.routing.sources import SessionSource
    from hermes_core.policy import ResetPolicy
    from hermes_state.delivery.routes import Route
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

IMPORTED_META_KEY: Final = "gateway_routes_imported"


class SessionRoutes:
    """The routes by session key."""

    def __init__(
        self,
        db: SessionDB,
        sessions_dir: Path | str,
        config: GatewayConfig,
        is_busy: Callable[[str], bool] | None = None,
    ) -> None:
        self._db = db
        self.sessions_dir = Path(sessions_dir)
        self.config = config
        self._has_active_processes = is_busy
        self._entries: dict[str, SessionEntry] = {}
        self._lock = threading.RLock()
        self._loaded = False
        self._is_export_due = False

    # Entries

    def _ensure_loaded(self) -> None:
        with self._lock:
            if self._loaded:
                return
            routes = self._db.routes.all()
            self._entries = {
                item.session_key: item for item in map(sources.to_entry, routes) if item
            }
            self._import()
            self._loaded = True

    def _in_file(self) -> Iterable[SessionEntry]:
        return routes_file.read(self.sessions_dir)

    def _import(self) -> None:
        """Import the routes of an older gateway from its file and its table, once."""
        db = self._db
        name = f"{IMPORTED_META_KEY}:{self.sessions_dir.resolve()}"
        if db.meta.get_meta(name):
            return
        in_store = routes_file.entries(db.routes.of_the_original(), "gateway_routing")
        for entry in (*self._in_file(), *in_store):
            if entry.session_key in self._entries:
                continue
            entry.place = entry.place or sources.key_of_entry(entry)
            self._entries[entry.session_key] = entry
            db.routes.add(sources.to_route(entry))
        db.meta.set_meta(name, datetime.now().astimezone().isoformat())

    @property
    def _is_shared_by_nodes(self) -> bool:
        return not self._db.engine.database.is_file

    def _current(self, session_key: str) -> SessionEntry | None:
        """The entry of a session key, as other nodes have left it; with the lock held."""
        if not self._is_shared_by_nodes:
            return self._entries.get(session_key)
        return self._update(session_key, self._db.routes.of_key(session_key))

    def _update(self, session_key: str, route: Route | None) -> SessionEntry | None:
        """Update an entry from its stored route; our own last change may not be stored yet."""
        known = self._entries.get(session_key)
        if route is None:
            self._entries.pop(session_key, None)
            return None
        is_same = known is not None and known.session_id == route.session_id
        if known is not None and is_same and known.updated_at.timestamp() >= route.updated_at:
            return known
        entry = sources.to_entry(route)
        if entry is not None:
            self._entries[session_key] = entry
        return entry

    def reload(self) -> None:
        """Read all entries again if other nodes may have changed them."""
        self._ensure_loaded()
        if not self._is_shared_by_nodes:
            return
        with self._lock:
            stored = {route.session_key: route for route in self._db.routes.all()}
            for key in stored.keys() | self._entries.keys():
                self._update(key, stored.get(key))

    def get(self, session_key: str) -> SessionEntry | None:
        """The entry of a session key."""
        self._ensure_loaded()
        with self._lock:
            return self._current(session_key)

    def list_sessions(self, active_minutes: int | None = None) -> list[SessionEntry]:
        """All entries, or those active lately; most recent first."""
        self.reload()
        with self._lock:
            entries = list(self._entries.values())
        if active_minutes is not None:
            since = local_now() - timedelta(minutes=active_minutes)
            entries = [entry for entry in entries if entry.updated_at >= since]
        return sorted(entries, key=lambda item: item.updated_at, reverse=True)

    def key_of(self, source: SessionSource) -> str:
        """The session key of a source."""
        self._ensure_loaded()
        return self._generate_session_key(source)

    def _generate_session_key(self, source: SessionSource) -> str:
        """The session key of a source: the text form, unless another chat has it already."""
        key = place_of(
            source,
            group_sessions_per_user=self.config.group_sessions_per_user,
            thread_sessions_per_user=self.config.thread_sessions_per_user,
        )
        text, canonical = format_legacy(key), key.encode()
        with self._lock:
            known = self._current(text)
        if known is None or known.place in {"", canonical}:
            return text
        return canonical

    def is_shared(self, entry: SessionEntry) -> bool:
        """Whether several users share the conversation of an entry."""
        if entry.chat_type == "dm":
            return False
        is_thread = entry.origin is not None and bool(entry.origin.thread_id)
        if is_thread:
            return not (
                self.config.thread_sessions_per_user and self.config.group_sessions_per_user
            )
        return not self.config.group_sessions_per_user

    def reply_mode(self, source: SessionSource) -> str:
        """Which parts of a reply quote the message: `off`, `first` or `all`."""
        platform = self.config.platforms.get(source.platform)
        return platform.reply_to_mode if platform else "first"

    # Conversations

    def get_or_create_session(
        self, source: SessionSource, *, force_new: bool = False
    ) -> SessionEntry:
        """The conversation of a chat; a new one if there is none or it has expired."""
        self._ensure_loaded()
        with self._lock:
            key = self._generate_session_key(source)
            entry = self._current(key)
            if entry is None:
                return self._begin(key, source)
            entry.origin = source
            if not entry.place:
                entry.place = self._place_of(source)
            reason = "session_reset" if force_new else self._reset_reason(entry)
            if reason:
                return self._replace(entry, reason, is_automatic=not force_new)
            entry.updated_at = local_now()
            entry.is_fresh_reset = False
            return entry if self._keep_open(entry) else self._begin(key, source)

    def get_open(self, session_key: str) -> SessionEntry | None:
        """The entry of a chat, whose conversation is reopened; None if it was deleted."""
        self._ensure_loaded()
        with self._lock:
            entry = self._current(session_key)
            if entry is None or self._keep_open(entry):
                return entry
            del self._entries[session_key]
            return None

    def _keep_open(self, entry: SessionEntry) -> bool:
        """Store the entry; reopen its conversation if another process has ended it.

        False if that process has deleted the conversation, which cuts its route.
        """
        row = self._db.sessions.find(entry.session_id)
        if row is not None and row.ended_at is None:
            self._put_soon(entry)
            return True
        entry.expiry_finalized = False
        self._is_export_due = True
        source = entry.platform.value if entry.platform else "unknown"
        facts = sources.row_fields(entry)
        return self._db.routes.reopen(sources.to_route(entry), source, facts)

    def _reset_reason(self, entry: SessionEntry) -> str:
        if entry.suspended:
            return "suspended"
        if entry.resume_pending or self._is_busy(entry):
            return ""
        return expiry_reason(entry, self._policy(entry), zone=self._zone) or ""

    def _begin(self, key: str, source: SessionSource) -> SessionEntry:
        entry = self._new_entry(key, source, self._new_id())
        platform, facts = source.platform.value, sources.row_fields(entry)
        route = sources.to_route(entry)
        if not self._db.routes.begin(route, platform, facts, only_if_free=True):
            other = self._update(key, self._db.routes.of_key(key))  # another node was faster
            if other is not None:
                return other
            self._db.routes.begin(route, platform, facts)
        return self._add(entry)

    def _new_entry(self, key: str, source: SessionSource, session_id: str) -> SessionEntry:
        now = local_now()
        return SessionEntry(
            key,
            session_id,
            now,
            now,
            origin=source,
            display_name=source.chat_name or source.user_name,
            platform=source.platform,
            chat_type=source.chat_type,
            place=self._place_of(source),
        )

    def _add(self, entry: SessionEntry) -> SessionEntry:
        self._entries[entry.session_key] = entry
        self._is_export_due = True
        return entry

    def reset_session(
        self, session_key: str, reason: str = "session_reset", mark: str = ""
    ) -> SessionEntry | None:
        """Start a new conversation in a chat; the old one is ended and kept.

        *mark* is stored in the same transaction: the message that caused the reset.
        """
        self._ensure_loaded()
        with self._lock:
            entry = self._current(session_key)
            if entry is None:
                return None
            return self._replace(entry, reason, is_automatic=False, mark=mark)

    def _replace(
        self, entry: SessionEntry, reason: str, *, is_automatic: bool, mark: str = ""
    ) -> SessionEntry:
        had_activity = bool(entry.total_tokens) or self._was_used(entry)
        new = self._point_at(entry, self._new_id(), reason, mark)
        new.was_auto_reset = is_automatic
        new.auto_reset_reason = reason if is_automatic else None
        new.reset_had_activity = had_activity
        new.is_fresh_reset = not is_automatic
        self._put(new)
        return new

    def _was_used(self, entry: SessionEntry) -> bool:
        row = self._db.sessions.find(entry.session_id)
        return bool(row and row.message_count)

    def switch_session(
        self,
        session_key: str,
        session_id: str,
        reason: str = "session_switch",
        mark: str = "",
    ) -> SessionEntry | None:
        """Route a chat to another existing conversation; a chat that had it starts a new one."""
        self.reload()
        with self._lock:
            entry = self._current(session_key)
            self._leave_to(session_key, session_id)
            if entry is None or entry.session_id == session_id:
                return entry
            if self._db.sessions.find(session_id) is None:
                raise SessionNotFoundError(f"session not found: {session_id}")
            return self._point_at(entry, session_id, reason, mark)

    def _leave_to(self, session_key: str, session_id: str) -> None:
        """Give every other chat that has a conversation a new one: it moves to this chat."""
        for entry in list(self._entries.values()):
            if entry.session_id == session_id and entry.session_key != session_key:
                self._point_at(entry, self._new_id(), "handoff", ends_old=False)

    def adopt(self, source: SessionSource, session_id: str, through: int = 0) -> SessionEntry:
        """The entry of a chat without a conversation, with one that is handed over to it.

        With *through*, the chat gets a copy of the conversation that ends with this message.
        """
        self._ensure_loaded()
        with self._lock:
            new_id = self._new_id() if through else session_id
            entry = self._new_entry(self._generate_session_key(source), source, new_id)
            route, facts = sources.to_route(entry), sources.row_fields(entry)
            if through:
                self._db.routes.begin_branch(route, session_id, through, facts)
            else:
                self._db.routes.adopt(route, facts)
            return self._add(entry)

    def branch_session(self, session_key: str, title: str, mark: str) -> SessionEntry | None:
        """Continue a chat in a copy of its conversation, which is ended and kept."""
        self._ensure_loaded()
        with self._lock:
            entry = self._current(session_key)
            if entry is None:
                return None
            new = sources.successor(entry, self._new_id(), local_now())
            self._db.routes.branch(sources.to_route(new), entry.session_id, title, mark)
            return self._add(new)

    def _point_at(
        self,
        old: SessionEntry,
        session_id: str,
        reason: str,
        mark: str = "",
        *,
        ends_old: bool = True,
    ) -> SessionEntry:
        new = sources.successor(old, session_id, local_now())
        self._db.routes.move(
            sources.to_route(new),
            old.session_id,
            reason,
            old.platform.value if old.platform else "unknown",
            sources.row_fields(new),
            mark,
            ends_old=ends_old,
        )
        return self._add(new)

    def update_session(self, session_key: str, **fields: Any) -> None:
        """Change fields of an entry."""
        self._ensure_loaded()
        with self._lock:
            entry = self._current(session_key)
            if entry is None:
                return
            for name, value in fields.items():
                setattr(entry, name, value)
            self._put(entry)

    def touch(self, session_key: str) -> None:
        """Record activity in a chat: its idle time starts now."""
        with self._lock:
            entry = self.get(session_key)
            if entry is not None and entry.end_turn(local_now()):
                self._put_soon(entry)

    def set_busy_check(self, is_busy: Callable[[str], bool]) -> None:
        """Set the check for running turns; busy chats do not expire."""
        self._has_active_processes = is_busy

    def _put(self, entry: SessionEntry) -> None:
        """Store one entry."""
        self._is_export_due = True
        self._db.routes.put(sources.to_route(entry))

    def _put_soon(self, entry: SessionEntry) -> None:
        """Store one entry with the next commit."""
        self._is_export_due = True
        self._db.routes.put_soon(sources.to_route(entry))

    # Expiry

    def _policy(self, entry: SessionEntry) -> ResetPolicy:
        return self.config.get_reset_policy(entry.platform, entry.chat_type)

    def _is_busy(self, entry: SessionEntry) -> bool:
        """Whether a turn is running in a chat; an error counts as yes."""
        if self._has_active_processes is None:
            return False
        try:
            return bool(self._has_active_processes(entry.session_key))
        except (OSError, RuntimeError, LookupError, ValueError):
            return True

    def _is_session_expired(self, entry: SessionEntry) -> bool:
        """Whether the reset policy has expired a conversation."""
        reason = expiry_reason(entry, self._policy(entry), zone=self._zone)
        return reason is not None and not self._is_busy(entry)

    @cached_property
    def _zone(self) -> ZoneInfo:
        """The configured time zone of the user."""
        return user_zone()

    def end_expired(self) -> None:
        """End every conversation that its reset policy has expired, once."""
        self.reload()
        with self._lock:
            entries = list(self._entries.values())
        for entry in entries:
            if not entry.suspended:
                self.finalize_expired(entry)

    def finalize_expired(self, entry: SessionEntry) -> None:
        """End an expired conversation, with its boundary event; the route stays."""
        with self._lock:
            is_present = self._entries.get(entry.session_key) is entry
            if entry.expiry_finalized or not is_present or not self._is_session_expired(entry):
                return  # a message has arrived meanwhile
            self._db.sessions.end_session(entry.session_id, "idle_timeout")
            entry.expiry_finalized = True
            self._put(entry)

    def prune_old_entries(self, max_age_days: int) -> int:
        """Drop the routes of inactive chats; how many.

        Suspended and busy ones stay. The conversations of the others are ended and kept.
        """
        if max_age_days <= 0:
            return 0
        self.reload()
        oldest = local_now() - timedelta(days=max_age_days)
        with self._lock:
            stale = [item for item in self._entries.values() if self._is_stale(item, oldest)]
            for entry in stale:
                del self._entries[entry.session_key]
            if stale:
                self._db.routes.drop(map(sources.to_route, stale))
                self._save()
        return len(stale)

    def _is_stale(self, entry: SessionEntry, oldest: datetime) -> bool:
        return entry.updated_at < oldest and not entry.suspended and not self._is_busy(entry)

    # Export

    def _save(self) -> None:
        """Write the export file."""
        with self._lock:
            self._is_export_due = False
            entries = {key: entry.to_dict() for key, entry in self._entries.items()}
        routes_file.write(self.sessions_dir, entries)

    def export_if_due(self) -> bool:
        """Write the export file if an entry has changed; whether it was written."""
        if self._is_export_due:
            self._save()
            return True
        return False

    # Keys and IDs

    def _new_id(self) -> str:
        return new_gateway_session_id(self._db.clock)

    def _place_of(self, source: SessionSource) -> str:
        return place_of(
            source,
            group_sessions_per_user=self.config.group_sessions_per_user,
            thread_sessions_per_user=self.config.thread_sessions_per_user,
        ).encode()
