"""The rows of the list and their filter, independent of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_cli.filters import ListFilters
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB


FIRST_ROWS: Final = 200  # more than a screen shows; read before the first paint
PAGE_ROWS: Final = 2000
MAX_HITS: Final = 60
ENDING_MESSAGES: Final = 30


class MessageHit(NamedTuple):
    """A conversation with a matching message, and the snippet."""

    session_id: str
    snippet: str


class BrowserSessions:
    """Reads and changes the conversations that match the filters of the command."""

    def __init__(
        self,
        db: SessionDB,
        filters: ListFilters,
        on_change: Callable[[SessionDB], None],
        max_rows: int | None = None,
    ) -> None:
        self._db = db
        self._filters = filters
        self._on_change = on_change
        self._max_rows = max_rows

    def first(self, *, with_archived: bool = False) -> list[ListedSession]:
        """The rows of the first screen."""
        return self._page(FIRST_ROWS, 0, with_archived)

    def pages(self, start: int, *, with_archived: bool = False) -> Iterator[list[ListedSession]]:
        """The other rows, in pages."""
        while rows := self._page(PAGE_ROWS, start, with_archived):
            yield rows
            start += len(rows)

    def _page(self, limit: int, offset: int, with_archived: bool) -> list[ListedSession]:
        if self._max_rows is not None:
            limit = min(limit, self._max_rows - offset)
            if limit <= 0:
                return []
        return self._db.lists.sessions(
            **self._filters,
            limit=limit,
            offset=offset,
            order_by_last_active=True,
            include_archived=with_archived,
        )

    def search(self, words: str) -> list[MessageHit]:
        """Conversations with messages that match *words*, latest first, each once."""
        source = self._filters.get("source")
        hits = self._db.search.find(
            words, source_filter=[source] if source else None, limit=MAX_HITS, sort="newest"
        )
        result: dict[str, MessageHit] = {}
        for hit in hits:
            # A conversation that continues in a new row is listed under its last row.
            tip = self._db.titles.get_compression_tip(hit.session_id)
            result.setdefault(tip, MessageHit(tip, hit.snippet_text))
        return list(result.values())

    def ending(self, session_id: str) -> list[MessageRow]:
        """The last messages of a conversation."""
        return self._db.messages.rows(session_id, limit=ENDING_MESSAGES, latest=True)

    def pin(self, session_id: str, *, is_pinned: bool) -> None:
        """Pin or unpin."""
        self._db.sessions.set_session_pinned(session_id, is_pinned)

    def trash(self, session_id: str) -> None:
        """Move to the trash and notify plugins."""
        self._db.trash.delete_session(session_id)
        self._on_change(self._db)


class RowEntry(NamedTuple):
    """One line of the list."""

    row: ListedSession
    snippet: str = ""  # the matching message, if title, ID and preview do not match


class RowCatalogue:
    """The loaded rows in list order, with a text filter."""

    def __init__(self) -> None:
        self._rows: dict[str, ListedSession] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[ListedSession]) -> None:
        """Append rows; known ones keep their position."""
        for row in rows:
            session_id = row.id
            if session_id not in self._rows:
                words = (session_id, row.session.title or "", row.preview)
                self._rows[session_id] = row
                self._texts[session_id] = "\n".join(words).casefold()

    def remove(self, session_id: str) -> None:
        """Remove a row."""
        self._rows.pop(session_id, None)
        self._texts.pop(session_id, None)

    def mark_pinned(self, session_id: str, *, is_pinned: bool) -> None:
        """Show a row as pinned, or not."""
        row = self._rows.get(session_id)
        if row is not None:
            session = row.session._replace(pinned=int(is_pinned))
            self._rows[session_id] = row._replace(session=session)

    def entries(self, typed: str, hits: Sequence[MessageHit] = ()) -> list[RowEntry]:
        """Rows that match in title, ID or preview, followed by rows with matching messages."""
        words = typed.casefold().split()
        if not words:
            return [RowEntry(row) for row in self._rows.values()]
        matches = {
            session_id: RowEntry(self._rows[session_id])
            for session_id, text in self._texts.items()
            if all(word in text for word in words)
        }
        for hit in hits:
            if hit.session_id in self._rows and hit.session_id not in matches:
                matches[hit.session_id] = RowEntry(self._rows[hit.session_id], hit.snippet)
        return list(matches.values())
