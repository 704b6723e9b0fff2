"""History search restricted to one chat, for users other than the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB
    from hermes_state.search.hits import FoundMessage
    from hermes_state.sessions.records import ListedSession

SEARCH_PAGE_SIZE: Final = 200
MAX_SCANNED_HITS: Final = 5_000  # hits of all chats that are examined


class ConversationHistory:
    """All conversations, as far as they may be searched from one."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def find(self, query: str, *, limit: int = 20) -> list[FoundMessage]:
        """Messages that match, newest first."""
        return self._db.search.find(query, limit=limit)

    def sessions(self, *, limit: int, order_by_last_active: bool) -> list[ListedSession]:
        """Conversations, most recent first."""
        return self._db.lists.sessions(limit=limit, order_by_last_active=order_by_last_active)

    def get_session_title(self, session_id: str) -> str | None:
        """The title of a conversation."""
        return self._db.get_session_title(session_id)


class ScopedHistory(ConversationHistory):
    """The conversations of one chat."""

    def __init__(self, db: SessionDB, session_key: str) -> None:
        super().__init__(db)
        self._session_key = session_key

    def find(self, query: str, *, limit: int = 20) -> list[FoundMessage]:
        """Search like the store, within the chat."""
        own = self.ids()
        results: list[FoundMessage] = []
        for hit in self._hits(query):
            if hit.session_id in own:
                results.append(hit)
            if len(results) == limit:
                break
        return results

    def _hits(self, query: str) -> Iterator[FoundMessage]:
        for offset in range(0, MAX_SCANNED_HITS, SEARCH_PAGE_SIZE):
            hits = self._db.search.find(query, limit=SEARCH_PAGE_SIZE, offset=offset)
            yield from hits
            if len(hits) < SEARCH_PAGE_SIZE:
                return

    def sessions(self, *, limit: int, order_by_last_active: bool) -> list[ListedSession]:
        """List like the store, within the chat."""
        if not self._session_key:
            return []
        return self._db.lists.sessions(
            limit=limit, session_key=self._session_key, order_by_last_active=order_by_last_active
        )

    def ids(self) -> set[str]:
        """The IDs of all rows of the chat's conversations."""
        if not self._session_key:
            return set()
        rows = self._db.lists.sessions(
            limit=-1, session_key=self._session_key, include_children=True
        )
        return {row.id for row in rows}
