"""The history of one place: what somebody may search who is not the owner of all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB

STEP: Final = 200
MOST: Final = 5_000  # hits that are looked through for those of the place


class OwnHistory:
    """The conversations of a place; nothing of any other is found."""

    def __init__(self, db: SessionDB, session_key: str) -> None:
        self._db = db
        self._session_key = session_key

    def search_messages(self, query: str, *, limit: int = 20) -> list[dict[str, Any]]:
        """As the store's, within the place."""
        own = self.ids()
        found: list[dict[str, Any]] = []
        for hit in self._hits(query):
            if hit["session_id"] in own:
                found.append(hit)
            if len(found) == limit:
                break
        return found

    def _hits(self, query: str) -> Iterator[dict[str, Any]]:
        for offset in range(0, MOST, STEP):
            hits = self._db.search_messages(query, limit=STEP, offset=offset)
            yield from hits
            if len(hits) < STEP:
                return

    def get_session_title(self, session_id: str) -> str | None:
        """What a conversation is called."""
        return self._db.get_session_title(session_id)

    def ids(self) -> set[str]:
        """Every row of the place's conversations."""
        rows = self._db.list_sessions_rich(
            limit=-1, session_key=self._session_key, include_children=True
        )
        return {str(row["id"]) for row in rows}
