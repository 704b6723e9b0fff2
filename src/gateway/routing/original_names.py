"""Methods of the session store under the names that plugins of hermes-agent use."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gateway.routing.entries import local_now
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.routing.entries import SessionEntry
    from hermes_compat.session_rows import RewindDict
    from hermes_core.messages import Message
    from hermes_state.store import SessionDB


class OriginalStoreNames:
    """Transcripts by session ID, and marks of routes."""

    @property
    def _db(self) -> SessionDB | None:
        """The session store."""
        raise NotImplementedError

    def get(self, session_key: str) -> SessionEntry | None:
        """The entry of a chat."""
        raise NotImplementedError

    def list_sessions(self, active_minutes: int | None = None) -> list[SessionEntry]:
        """All entries."""
        raise NotImplementedError

    def update_session(self, session_key: str, **fields: Any) -> None:
        """Change fields of an entry."""
        raise NotImplementedError

    def suspend_session(self, session_key: str) -> bool:
        """Suspend a conversation; the next message starts another."""
        return self._mark(session_key, suspended=True)

    def load_transcript(self, session_id: str) -> list[Message]:
        """The messages of a session as a model gets them."""
        return self._store().messages.get_messages_as_conversation(session_id)

    def append_to_transcript(
        self, session_id: str, message: Message, skip_db: bool = False
    ) -> None:
        """Store a message; with *skip_db* nothing, because it is stored already."""
        if not skip_db:
            self._store().messages.append_messages_batch(session_id, [message])

    def rewrite_transcript(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session; the history keeps the old ones as undone."""
        self._store().edits.replace_messages(session_id, list(messages))

    def rewind_session(self, session_id: str, target_message_id: int) -> RewindDict:
        """Undo the messages of a session from one of the user's on."""
        from hermes_compat import session_rows  # noqa: PLC0415 - only plugins call it

        store = self._store()
        undone = store.edits.rewind(session_id, target_message_id)
        return session_rows.rewind_dict(store.engine.columns, undone)

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

    def _store(self) -> SessionDB:
        if self._db is None:
            raise StoreUnavailableError("The history cannot be opened.")
        return self._db
