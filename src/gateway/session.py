"""The places people write from, and the conversation each of them is having.

Routes are rows of the store, changed together with the conversations they lead to.
`sessions.json` is written for people and older tools, now and then and never for each
message; it is read once, where an older gateway has left one.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.routing import routes_file
from gateway.routing.entries import SessionEntry, expiry_reason, user_zone
from gateway.routing.sources import SessionSource, build_session_key, place_of
from hermes_core.clock import SystemClock
from hermes_core.errors import KeyFormatError
from hermes_core.ids import new_gateway_session_id
from hermes_core.legacy_session_keys import legacy_text, parse_legacy
from hermes_state import SessionDB
from hermes_state.delivery.routes import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from zoneinfo import ZoneInfo

    from gateway.config import GatewayConfig

__all__ = ["SessionEntry", "SessionSource", "SessionStore", "build_session_key"]

log = logging.getLogger(__name__)

IMPORTED: Final = "gateway_routes_imported"


class SessionStore:
    """Every place, by its key."""

    def __init__(
        self,
        sessions_dir: Path | str,
        config: GatewayConfig,
        has_active_processes_fn: Callable[[str], bool] | None = None,
    ) -> None:
        self.sessions_dir = Path(sessions_dir)
        self.config = config
        self._has_active_processes = has_active_processes_fn
        self._entries: dict[str, SessionEntry] = {}
        self._lock = threading.RLock()
        self._loaded = False
        self._is_export_due = False

    @cached_property
    def _db(self) -> SessionDB | None:
        """The store; None keeps everything in the file alone."""
        return SessionDB()

    # What is known

    def _ensure_loaded(self) -> None:
        with self._lock:
            if self._loaded:
                return
            db = self._db
            if db is None:
                self._entries = {one.session_key: one for one in self._in_file()}
            else:
                routes = db.routes()
                self._entries = {one.session_key: one for one in map(_entry, routes) if one}
                self._import(db)
            self._loaded = True

    def _in_file(self) -> Iterable[SessionEntry]:
        return routes_file.read(self.sessions_dir)

    def _import(self, db: SessionDB) -> None:
        """Take over what an older gateway noted, in its file or in its table, once."""
        name = f"{IMPORTED}:{self.sessions_dir.resolve()}"
        if db.get_meta(name):
            return
        in_store = routes_file.entries(db.routes_of_the_original(), "gateway_routing")
        for entry in (*self._in_file(), *in_store):
            if entry.session_key in self._entries:
                continue
            entry.place = entry.place or _place(entry)
            self._entries[entry.session_key] = entry
            db.put_route(_route(entry))
        db.set_meta(name, datetime.now().astimezone().isoformat())

    def get(self, session_key: str) -> SessionEntry | None:
        """What is noted about a place."""
        self._ensure_loaded()
        with self._lock:
            return self._entries.get(session_key)

    def list_sessions(self, active_minutes: int | None = None) -> list[SessionEntry]:
        """Every place, or those with something lately; the latest first."""
        self._ensure_loaded()
        with self._lock:
            found = list(self._entries.values())
        if active_minutes is not None:
            since = local_now() - timedelta(minutes=active_minutes)
            found = [one for one in found if one.updated_at >= since]
        return sorted(found, key=lambda one: one.updated_at, reverse=True)

    def key_of(self, source: SessionSource) -> str:
        """The key of the place a message came from."""
        self._ensure_loaded()
        return self._generate_session_key(source)

    def _generate_session_key(self, source: SessionSource) -> str:
        """The key of a place: the text people know, unless another place goes by it."""
        where = place_of(
            source,
            group_sessions_per_user=self.config.group_sessions_per_user,
            thread_sessions_per_user=self.config.thread_sessions_per_user,
        )
        text, canonical = legacy_text(where), where.encode()
        with self._lock:
            known = self._entries.get(text)
        if known is None or known.place in {"", canonical}:
            return text
        return canonical

    def is_shared(self, entry: SessionEntry) -> bool:
        """Whether several people write in one conversation there."""
        if entry.chat_type == "dm":
            return False
        is_thread = entry.origin is not None and bool(entry.origin.thread_id)
        if is_thread:
            return not (
                self.config.thread_sessions_per_user and self.config.group_sessions_per_user
            )
        return not self.config.group_sessions_per_user

    def reply_mode(self, source: SessionSource) -> str:
        """Which parts of an answer quote the message: `off`, `first` or `all`."""
        found = self.config.platforms.get(source.platform)
        return found.reply_to_mode if found else "first"

    # A place and its conversation

    def get_or_create_session(
        self, source: SessionSource, *, force_new: bool = False
    ) -> SessionEntry:
        """The conversation of a place; a new one where there is none or policy says so."""
        self._ensure_loaded()
        with self._lock:
            key = self._generate_session_key(source)
            entry = self._entries.get(key)
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
            self._keep_open(entry)
            return entry

    def _keep_open(self, entry: SessionEntry) -> None:
        """Note a place; if its conversation was ended elsewhere, it is opened again."""
        row = self._db.get_session(entry.session_id) if self._db is not None else None
        if self._db is None or (row is not None and row.get("ended_at") is None):
            self._note(entry)
            return
        entry.expiry_finalized = False
        source = entry.platform.value if entry.platform else "unknown"
        self._db.begin_route(_route(entry), source, _facts(entry))
        self._is_export_due = True

    def _reset_reason(self, entry: SessionEntry) -> str:
        if entry.suspended:
            return "suspended"
        if entry.resume_pending or self._is_held(entry):
            return ""
        return expiry_reason(entry, self._policy(entry), zone=self._zone) or ""

    def _begin(self, key: str, source: SessionSource) -> SessionEntry:
        now = local_now()
        entry = SessionEntry(
            key,
            self._new_id(),
            now,
            now,
            origin=source,
            display_name=source.chat_name or source.user_name,
            platform=source.platform,
            chat_type=source.chat_type,
            place=self._place_of(source),
        )
        self._entries[key] = entry
        if self._db is not None:
            self._db.begin_route(_route(entry), source.platform.value, _facts(entry))
        self._is_export_due = True
        return entry

    def reset_session(
        self, session_key: str, reason: str = "session_reset", mark: str = ""
    ) -> SessionEntry | None:
        """Give a place a new conversation; the old one is ended and kept.

        *mark* is noted with it: for which message it was done.
        """
        self._ensure_loaded()
        with self._lock:
            entry = self._entries.get(session_key)
            if entry is None:
                return None
            return self._replace(entry, reason, is_automatic=False, mark=mark)

    def _replace(
        self, entry: SessionEntry, reason: str, *, is_automatic: bool, mark: str = ""
    ) -> SessionEntry:
        had_activity = bool(entry.total_tokens) or self._was_used(entry)
        new = self._pointed_at(entry, self._new_id(), reason, mark)
        new.was_auto_reset = is_automatic
        new.auto_reset_reason = reason if is_automatic else None
        new.reset_had_activity = had_activity
        new.is_fresh_reset = not is_automatic
        self._note(new)
        return new

    def _was_used(self, entry: SessionEntry) -> bool:
        row = self._db.get_session(entry.session_id) if self._db is not None else None
        return bool(row and row.get("message_count"))

    def switch_session(
        self,
        session_key: str,
        session_id: str,
        reason: str = "session_switch",
        mark: str = "",
    ) -> SessionEntry | None:
        """Point a place at another conversation that is there already."""
        self._ensure_loaded()
        with self._lock:
            entry = self._entries.get(session_key)
            if entry is None or entry.session_id == session_id:
                return entry
            return self._pointed_at(entry, session_id, reason, mark)

    def _pointed_at(
        self, old: SessionEntry, session_id: str, reason: str, mark: str = ""
    ) -> SessionEntry:
        now = local_now()
        new = SessionEntry(
            old.session_key,
            session_id,
            now,
            now,
            origin=old.origin,
            display_name=old.display_name,
            platform=old.platform,
            chat_type=old.chat_type,
            prev_session_id=old.session_id,
            place=old.place,
        )
        if self._db is not None:
            source = old.platform.value if old.platform else "unknown"
            self._db.move_route(_route(new), old.session_id, reason, source, _facts(new), mark)
        self._entries[old.session_key] = new
        self._is_export_due = True
        return new

    def update_session(self, session_key: str, **facts: Any) -> None:
        """Note something about a place: tokens, marks, what else an entry has."""
        self._ensure_loaded()
        with self._lock:
            entry = self._entries.get(session_key)
            if entry is None:
                return
            for name, value in facts.items():
                setattr(entry, name, value)
            self._note(entry)

    def touch(self, session_key: str) -> None:
        """Something has just happened in a place: its pause begins now."""
        self.update_session(session_key, updated_at=local_now())

    def spare(self, is_at_work: Callable[[str], bool]) -> None:
        """Leave alone the places in which something still runs, by their keys."""
        self._has_active_processes = is_at_work

    def suspend_session(self, session_key: str) -> bool:
        """Keep a conversation for later; the next message begins another."""
        if self.get(session_key) is None:
            return False
        self.update_session(session_key, suspended=True)
        return True

    def _note(self, entry: SessionEntry) -> None:
        """Write one row, whatever the number of places."""
        self._is_export_due = True
        if self._db is not None:
            self._db.put_route(_route(entry))

    # Ends

    def _policy(self, entry: SessionEntry) -> Any:
        return self.config.get_reset_policy(entry.platform, entry.chat_type)

    def _is_held(self, entry: SessionEntry) -> bool:
        """Whether something still runs for a place; an error counts as yes."""
        if self._has_active_processes is None:
            return False
        try:
            return bool(self._has_active_processes(entry.session_key))
        except (OSError, RuntimeError, LookupError, ValueError):
            return True

    def _is_session_expired(self, entry: SessionEntry) -> bool:
        """Whether policy says that a conversation is over."""
        reason = expiry_reason(entry, self._policy(entry), zone=self._zone)
        return reason is not None and not self._is_held(entry)

    @cached_property
    def _zone(self) -> ZoneInfo:
        """The zone in which the user's days begin."""
        return user_zone()

    def finalize_expired(self, entry: SessionEntry) -> None:
        """End an expired conversation's row, announced with it; the route stays."""
        with self._lock:
            is_present = self._entries.get(entry.session_key) is entry
            if entry.expiry_finalized or not is_present or not self._is_session_expired(entry):
                return  # a message came in between
            if self._db is not None:
                self._db.end_session(entry.session_id, "idle_timeout")
            entry.expiry_finalized = True
            self._note(entry)

    def prune_old_entries(self, max_age_days: int) -> int:
        """Forget places where nothing has happened for long; how many.

        Those that were suspended and those in which something still runs stay. The
        conversations of the others are ended and kept.
        """
        if max_age_days <= 0:
            return 0
        self._ensure_loaded()
        oldest = local_now() - timedelta(days=max_age_days)
        with self._lock:
            gone = [one for one in self._entries.values() if self._is_stale(one, oldest)]
            for entry in gone:
                del self._entries[entry.session_key]
            if gone:
                if self._db is not None:
                    self._db.drop_routes(map(_route, gone))
                self._save()
        return len(gone)

    def _is_stale(self, entry: SessionEntry, oldest: datetime) -> bool:
        return entry.updated_at < oldest and not entry.suspended and not self._is_held(entry)

    # The file

    def _save(self) -> None:
        """Write the file for people and older tools, whole."""
        with self._lock:
            self._is_export_due = False
            entries = {key: entry.to_dict() for key, entry in self._entries.items()}
        routes_file.write(self.sessions_dir, entries)

    def export_if_due(self) -> bool:
        """Write the file if anything has changed since; called now and then."""
        if self._is_export_due:
            self._save()
            return True
        return False

    # Names

    def _new_id(self) -> str:
        return new_gateway_session_id(self._db.clock if self._db is not None else SystemClock())

    def _place_of(self, source: SessionSource) -> str:
        return place_of(
            source,
            group_sessions_per_user=self.config.group_sessions_per_user,
            thread_sessions_per_user=self.config.thread_sessions_per_user,
        ).encode()


def _place(entry: SessionEntry) -> str:
    """The canonical key of an entry that has only its text; the text where that is all."""
    try:
        certain = parse_legacy(entry.session_key).certain
    except KeyFormatError:
        certain = None
    return certain.encode() if certain else entry.session_key


def _route(entry: SessionEntry) -> Route:
    return Route(
        entry.place or _place(entry),
        entry.session_key,
        entry.session_id,
        entry.updated_at.timestamp(),
        entry.to_dict(),
    )


def _entry(route: Route) -> SessionEntry | None:
    """What is noted about a place; None when it cannot be read, which harms no other."""
    try:
        entry = SessionEntry.from_dict(route.entry)
    except (TypeError, ValueError, KeyError) as error:
        log.warning("the route of %s cannot be read and is left out: %s", route.session_key, error)
        return None
    entry.place = route.place
    return entry


def _facts(entry: SessionEntry) -> dict[str, Any]:
    """What a conversation's row says about its place."""
    origin = entry.origin
    return {
        "session_key": entry.session_key,
        "chat_type": entry.chat_type,
        "display_name": entry.display_name,
        "chat_id": origin.chat_id if origin else None,
        "thread_id": origin.thread_id if origin else None,
        "user_id": origin.user_id if origin else None,
    }


def local_now() -> datetime:
    """The present by the local clock, without a zone: so entries note their moments."""
    return datetime.now()  # noqa: DTZ005 - as said
