"""Searching the history, for those who hold a SessionDB."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import plain_text
from hermes_state.codec import decode_content
from hermes_state.part import StorePart
from hermes_state.search import filling
from hermes_state.search.finding import BEYOND, CHUNK_IDS, Wish, ask_index, by_ids, scan
from hermes_state.search.query import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.search.finding import Candidate, IndexAnswer
    from hermes_state.transaction import Reader

CONTEXT_CHARACTERS: Final = 200
CATCH_UP_SECONDS: Final = 0.3

ENDS: Final = """
    SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM messages WHERE session_id = ?
"""
NEIGHBOURS: Final = """
    SELECT role, content FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? ORDER BY id
"""


class SearchPart(StorePart):
    """Finding messages."""

    def search_messages(
        self,
        query: str,
        source_filter: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
        role_filter: Sequence[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        sort: str | None = None,
        include_inactive: bool = False,
        *,
        session_id: str | None = None,
        since: float | None = None,
        until: float | None = None,
        with_tools: bool = False,
        inside_words: bool = False,
    ) -> list[dict[str, Any]]:
        """Messages that answer *query*, with a snippet and the places of the hits in it.

        Words, "phrases", beginn*, one OR two, -not. `sort` is newest, oldest or rank;
        without it, newest. `inside_words` finds pieces of words. Tool calls and their
        results are looked at `with_tools`. Undone messages are left out unless asked
        for, those of trashed sessions always.
        """
        wish = Wish(
            parse(query, is_inside=inside_words),
            roles=tuple(role_filter or ()),
            sources=tuple(source_filter or ()),
            exclude_sources=tuple(exclude_sources or ()),
            session_id=session_id,
            since=since,
            until=until,
            with_tools=with_tools or "tool" in (role_filter or ()),
            include_inactive=include_inactive,
            oldest_first=sort == "oldest",
        )
        if wish.query.is_empty:
            return []
        if session_id is not None:
            ends = self.engine.read(lambda reader: reader.row(ENDS, (session_id,)))
            wish = wish._replace(first_id=(ends or [0])[0], last_id=(ends or [0, 0])[1])
        wanted = -1 if limit < 0 else offset + limit
        found: list[Candidate] = []
        for candidate in self._answers(wish, by_rank=sort == "rank"):
            found.append(candidate)
            if len(found) == wanted:
                break
        return [self._hit(wish, candidate) for candidate in found[offset:]]

    def fill_search(self, seconds: float | None = None) -> bool:
        """Bring the search index up to date, for so long at most; whether it is."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while (left := self._fill_slice()) is not False:
            if left is None or (deadline is not None and time.monotonic() >= deadline):
                return False
        return True

    def search_progress(self) -> tuple[int, int] | None:
        """How far the search index is: message ids done and in all; None when complete."""
        mark = self.engine.search.use(filling.mark_of)
        newest = self.engine.read(filling.newest)
        return None if mark == newest else (mark or 0, newest)

    def rebuild_search(self) -> None:
        """Throw the search index away; it is filled again."""
        self.engine.search.remove()

    def _fill_slice(self) -> bool | None:
        """Index a few messages: whether more are left; None if the file cannot be used."""
        search, with_tools = self.engine.search, self.engine.settings.search_tools
        mark = search.use(filling.mark_of)
        if mark is None:
            return None
        part = self.engine.read(
            lambda reader: filling.read_slice(reader, mark, with_tools=with_tools)
        )
        if part.through == mark:
            return False
        done = search.use(lambda connection: filling.put(connection, part, with_tools=with_tools))
        return done or None

    def _answers(self, wish: Wish, *, by_rank: bool) -> Iterator[Candidate]:
        self.fill_search(CATCH_UP_SECONDS)
        is_covered = self.engine.settings.search_tools or not wish.with_tools
        first = self._ask(wish, 0 if by_rank or wish.oldest_first else BEYOND, by_rank=by_rank)
        if not is_covered or first is None:
            yield from scan(self.engine.read, wish, above=0, below=BEYOND)
            return
        tail = scan(self.engine.read, wish, above=first.through, below=BEYOND)
        if not wish.oldest_first:
            yield from tail
        yield from self._from_index(wish, first, by_rank=by_rank)
        if wish.oldest_first:
            yield from tail

    def _ask(self, wish: Wish, position: int, *, by_rank: bool) -> IndexAnswer | None:
        return self.engine.search.use(
            lambda connection: ask_index(
                connection, wish, position=position, limit=CHUNK_IDS, by_rank=by_rank
            )
        )

    def _from_index(self, wish: Wish, answer: IndexAnswer, *, by_rank: bool) -> Iterator[Candidate]:
        seen = 0
        while True:
            ids = [number for number in answer.ids if number <= answer.through]
            for candidate in self.engine.read(lambda reader, i=ids: by_ids(reader, i)):  # type: ignore[misc]
                if wish.allows(candidate):
                    yield candidate
            seen += len(answer.ids)
            if answer.is_all:
                return
            following = self._ask(wish, seen if by_rank else answer.ids[-1], by_rank=by_rank)
            if following is None:
                return
            answer = following

    def _hit(self, wish: Wish, candidate: Candidate) -> dict[str, Any]:
        row = candidate.row

        def around(reader: Reader) -> list[tuple[Any, ...]]:
            return reader.rows(NEIGHBOURS, (row.session_id, row.id - 1, row.id + 1))

        hit = candidate.as_hit(wish.query, with_tools=wish.with_tools)
        hit["context"] = [
            {"role": role, "content": plain_text(decode_content(content))[:CONTEXT_CHARACTERS]}
            for role, content in self.engine.read(around)
        ]
        return hit
