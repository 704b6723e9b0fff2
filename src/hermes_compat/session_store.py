"""The routing table under the names that plugins of hermes-agent use."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from gateway.routing.session_routes import SessionRoutes
from gateway.routing.sources import local_now
from hermes_compat import session_db
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gateway.config import GatewayConfig
    from gateway.routing.sources import SessionEntry
    from hermes_compat.session_db import RowDict
    from hermes_core.messages import Message


class NoRows:
    """Stands for the tables of a store where `sessions.json` is all there is."""

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        return lambda *_arguments, **_options: {}


FILE_ONLY: Final = cast(
    "SessionDB",
    SimpleNamespace(
        routes=NoRows(),
        meta=NoRows(),
        engine=SimpleNamespace(database=SimpleNamespace(is_file=True)),
    ),
)


class SessionStore(SessionRoutes):
    """The routes by session key, with transcripts by session ID, and marks of routes."""

    def __init__(
        self,
        sessions_dir: Path | str,
        config: GatewayConfig,
        has_active_processes_fn: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(FILE_ONLY, sessions_dir, config, has_active_processes_fn)
        del self.__dict__["_db"]  # opened at first use: tests replace it before

    @classmethod
    def of(cls, routes: SessionRoutes) -> SessionStore:
        """The same routes under these names, for plugins."""
        store = cls.__new__(cls)
        store.__dict__ = routes.__dict__
        return store

    @property
    def _db(self) -> SessionDB:
        if "_db" not in self.__dict__:
            self.__dict__["_db"] = SessionDB()
        return cast("SessionDB", self.__dict__["_db"])

    @_db.setter
    def _db(self, db: SessionDB | None) -> None:
        self.__dict__["_db"] = db or FILE_ONLY

    def suspend_session(self, session_key: str) -> bool:
        """Suspend a conversation; the next message starts another."""
        return self._mark(session_key, suspended=True)

    def load_transcript(self, session_id: str) -> list[Message]:
        """The messages of a session as a model gets them."""
        return self._db.messages.get_messages_as_conversation(session_id)

    def append_to_transcript(
        self, session_id: str, message: Message, skip_db: bool = False
    ) -> None:
        """Store a message; with *skip_db* nothing, because it is stored already."""
        if not skip_db:
            self._db.messages.append_messages_batch(session_id, [message])

    def rewrite_transcript(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session; the history keeps the old ones as undone."""
        self._db.edits.replace_messages(session_id, list(messages))

    def rewind_session(self, session_id: str, target_message_id: int) -> RowDict:
        """Undo the messages of a session from one of the user's on."""
        undone = self._db.edits.rewind(session_id, target_message_id)
        return session_db.rewind_dict(self._db.engine.columns, undone)

    def lookup_by_session_id(self, session_id: str) -> SessionEntry | None:
        """The entry of the chat that has a session."""
        return next((item for item in self.list_sessions() if item.session_id == session_id), None)

    def has_any_sessions(self) -> bool:
        """Whether a chat has a conversation."""
        return bool(self.list_sessions())

    def mark_resume_pending(self, session_key: str, reason: str = "") -> bool:
        """Keep the conversation of a chat open until it is continued."""
        return self._mark(session_key, resume_pending=True, resume_reason=reason or None)

    def clear_resume_pending(self, session_key: str) -> bool:
        """Remove that mark."""
        return self._mark(session_key, resume_pending=False, resume_reason=None)

    def suspend_recently_active(self, max_age_seconds: int = 120) -> int:
        """Suspend the conversations that were used within some seconds; their number."""
        oldest = local_now() - timedelta(seconds=max_age_seconds)
        return sum(
            self.suspend_session(entry.session_key)
            for entry in self.list_sessions()
            if entry.updated_at >= oldest and not entry.suspended
        )

    def _mark(self, session_key: str, **fields: Any) -> bool:
        if self.get(session_key) is None:
            return False
        self.update_session(session_key, **fields)
        return True
