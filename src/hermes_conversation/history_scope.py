"""History search restricted to one chat, for users other than the owner."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from hermes_state.search.repository import SearchOptions

if TYPE_CHECKING:
    from hermes_state.messages.rows import MessageRow
    from hermes_state.search.hits import SearchAnswer
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


MESSAGES_AROUND: Final = 7
MATCHING_MESSAGES: Final = 200


class ConversationHistory:
    """All conversations, as far as they may be searched from one."""

    def __init__(self, db: SessionDB, only: frozenset[str] | None = None) -> None:
        self._db = db
        self._only = only  # the sessions that may be searched; None for all

    def answer(self, query: str, *, limit: int = 20, beside: str = "") -> SearchAnswer:
        """Messages that answer *query*; without those that the session *beside* shows."""
        shown: set[int] = set()
        if beside:  # what is in its context, e.g. the question itself
            first_row = self._db.messages.repeated(beside).first_row
            shown = {first_row(row.id) for row in self._db.messages.rows(beside)}
        options = SearchOptions(allowed_ids=self._allowed_ids(), limit=limit + len(shown))
        answer = self._db.search.answer(query, options)
        hits = [hit for hit in answer.hits if hit.id not in shown]
        return answer._replace(hits=hits[:limit])

    def _allowed_ids(self) -> frozenset[str] | None:
        return self._only

    def may_read(self, session_id: str) -> bool:
        """Whether a conversation may be read."""
        allowed = self._allowed_ids()
        return allowed is None or session_id in allowed

    def around(self, message_id: int) -> list[MessageRow]:
        """A message with those before and after it; none if it may not be read."""
        session_id = self._db.messages.session_of(message_id)
        if (
            session_id is None
            or not self.may_read(session_id)
            or self._db.trash.trashed_at(session_id)
        ):
            return []
        page = self._db.transcripts.page(
            session_id, MESSAGES_AROUND, around=message_id, with_undone=False
        )
        return page.rows if any(row.id == message_id for row in page.rows) else []

    def sessions(self, *, limit: int, order_by_last_active: bool) -> list[ListedSession]:
        """Conversations, most recent first."""
        return self._db.lists.sessions(limit=limit, order_by_last_active=order_by_last_active)

    def matching(self, words: str, *, limit: int) -> list[ListedSession]:
        """Conversations with the words in the title or first message, then those in any message."""
        hits = self.answer(words, limit=MATCHING_MESSAGES).hits
        messages = (self._db.titles.get_compression_tip(hit.session_id) for hit in hits)
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

    def _allowed_ids(self) -> frozenset[str] | None:
        return frozenset(self.ids())

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
