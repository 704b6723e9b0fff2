"""History search restricted to one chat, for users other than the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB

SEARCH_PAGE_SIZE: Final = 200
MAX_SCANNED_HITS: Final = 5_000  # hits of all chats that are examined


class ScopedHistory:
    """The conversations of one chat."""

    def __init__(self, db: SessionDB, session_key: str) -> None:
        self._db = db
        self._session_key = session_key

    def search_messages(self, query: str, *, limit: int = 20) -> list[dict[str, Any]]:
        """Search like the store, within the chat."""
        own = self.ids()
        results: list[dict[str, Any]] = []
        for hit in self._hits(query):
            if hit["session_id"] in own:
                results.append(hit)
            if len(results) == limit:
                break
        return results

    def _hits(self, query: str) -> Iterator[dict[str, Any]]:
        for offset in range(0, MAX_SCANNED_HITS, SEARCH_PAGE_SIZE):
            hits = self._db.search_messages(query, limit=SEARCH_PAGE_SIZE, offset=offset)
            yield from hits
            if len(hits) < SEARCH_PAGE_SIZE:
                return

    def get_session_title(self, session_id: str) -> str | None:
        """The title of a conversation."""
        return self._db.get_session_title(session_id)

    def list_sessions_rich(self, *, limit: int, order_by_last_active: bool) -> list[dict[str, Any]]:
        """List like the store, within the chat."""
        if not self._session_key:
            return []
        return self._db.list_sessions_rich(
            limit=limit, session_key=self._session_key, order_by_last_active=order_by_last_active
        )

    def ids(self) -> set[str]:
        """The IDs of all rows of the chat's conversations."""
        if not self._session_key:
            return set()
        rows = self._db.list_sessions_rich(
            limit=-1, session_key=self._session_key, include_children=True
        )
        return {str(row["id"]) for row in rows}
