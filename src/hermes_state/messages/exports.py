"""A session as one dictionary: every column, and every message with every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_state.messages.history import MessagePart
from hermes_state.sessions import lineage
from hermes_state.sessions.lists import ListPart

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExportPart(MessagePart, ListPart):
    """Giving sessions out."""

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """All columns of a session, or None."""
        raise NotImplementedError

    def export_session(
        self, session_id: str, include_inactive: bool = True
    ) -> dict[str, Any] | None:
        """A session with its messages; undone and compacted ones too, unless not wanted."""
        session = self.get_session(session_id)
        if session is None:
            return None
        session["messages"] = list(self.iter_messages(session_id, include_inactive))
        return session

    def export_session_lineage(self, session_id: str) -> list[dict[str, Any]]:
        """Every row of the conversation a session belongs to, oldest first."""
        tip = self.engine.read(lambda reader: lineage.tip_of(reader, session_id))
        chain = self.engine.read(lambda reader: lineage.chain_of(reader, tip))
        exports = (self.export_session(one) for one in chain)
        return [session for session in exports if session is not None]

    def iter_exports(self, source: str | None = None) -> Iterator[dict[str, Any]]:
        """Every session in turn, oldest first; one at a time in memory."""
        for row in self.list_sessions_rich(
            source, limit=-1, include_children=True, include_archived=True
        )[::-1]:
            session = self.export_session(row["id"])
            if session is not None:
                yield session

    def export_all(self, source: str | None = None) -> list[dict[str, Any]]:
        """Every session; for a large history use `iter_exports`."""
        return list(self.iter_exports(source))
