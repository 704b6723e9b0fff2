"""History search restricted to one chat, for users other than the owner."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.search.hits import FoundMessage
    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB

PAGE_SIZE: Final = 100


def latest_session_in(db: SessionDB, folder: str) -> ListedSession | None:
    """Its row, or None; those of subfolders and of other agents do not count."""
    offset = 0
    while rows := db.lists.sessions(
        limit=PAGE_SIZE, offset=offset, order_by_last_active=True, cwd_prefix=folder
    ):
        for row in rows:
            if row.session.cwd == folder and db.imports.of_session(row.session.id) is None:
                return row
        offset += len(rows)
    return None


SEARCH_PAGE_SIZE: Final = 200
MAX_SCANNED_HITS: Final = 5_000  # hits of all chats that are examined


class ConversationHistory:
    """All conversations, as far as they may be searched from one."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def find(self, query: str, *, limit: int = 20, beside: str = "") -> list[FoundMessage]:
        """Messages that match, newest first; without those that the session *beside* shows."""
        return list(itertools.islice(self._outside(self._hits(query, limit), beside), limit))

    def _outside(self, hits: Iterator[FoundMessage], session_id: str) -> Iterator[FoundMessage]:
        """Leave out what is in the context of a session, e.g. the question itself."""
        shown: set[int] | None = None
        for hit in hits:
            if hit.session_id == session_id:
                if shown is None:
                    first_row = self._db.messages.repeated(session_id).first_row
                    shown = {first_row(row.id) for row in self._db.messages.rows(session_id)}
                if hit.id in shown:
                    continue
            yield hit

    def _hits(self, query: str, limit: int) -> Iterator[FoundMessage]:
        size = min(max(2 * limit, 1), SEARCH_PAGE_SIZE)
        for offset in range(0, MAX_SCANNED_HITS, size):
            hits = self._db.search.find(query, limit=size, offset=offset)
            yield from hits
            if len(hits) < size:
                return

    def sessions(self, *, limit: int, order_by_last_active: bool) -> list[ListedSession]:
        """Conversations, most recent first."""
        return self._db.lists.sessions(limit=limit, order_by_last_active=order_by_last_active)

    def matching(self, words: str, *, limit: int) -> list[ListedSession]:
        """Conversations with the words in the title or first message, then those in any message."""
        messages = (
            self._db.titles.get_compression_tip(hit.session_id) for hit in self._hits(words, limit)
        )
        found: dict[str, ListedSession] = {}
        for session_id in itertools.chain(self._titles(words), messages):
            row = None if session_id in found else self._db.lists.find(session_id)
            if row is not None:
                found[session_id] = row
            if len(found) == limit:
                break
        return list(found.values())

    def _titles(self, words: str) -> list[str]:
        return self._db.search.titles(words, -1)

    def get_session_title(self, session_id: str) -> str | None:
        """The title of a conversation."""
        return self._db.titles.get_session_title(session_id)


class ScopedHistory(ConversationHistory):
    """The conversations of one chat."""

    def __init__(self, db: SessionDB, session_key: str) -> None:
        super().__init__(db)
        self._session_key = session_key

    def _hits(self, query: str, limit: int) -> Iterator[FoundMessage]:
        """Search like the store, within the chat."""
        del limit  # most hits belong to other chats
        own = self.ids()
        yield from (hit for hit in super()._hits(query, SEARCH_PAGE_SIZE) if hit.session_id in own)

    def sessions(self, *, limit: int, order_by_last_active: bool) -> list[ListedSession]:
        """List like the store, within the chat."""
        if not self._session_key:
            return []
        return self._db.lists.sessions(
            limit=limit, session_key=self._session_key, order_by_last_active=order_by_last_active
        )

    def _titles(self, words: str) -> list[str]:
        own = self.ids()
        return [session_id for session_id in super()._titles(words) if session_id in own]

    def ids(self) -> set[str]:
        """The IDs of all rows of the chat's conversations."""
        if not self._session_key:
            return set()
        rows = self._db.lists.sessions(
            limit=-1, session_key=self._session_key, include_children=True
        )
        return {row.id for row in rows}
