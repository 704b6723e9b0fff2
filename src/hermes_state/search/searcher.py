"""Answering searches: the index as far as it reaches, reading where it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import plain_text
from hermes_state.engine.side_file import read_meta
from hermes_state.messages.rows import decode_content
from hermes_state.search import index_builder
from hermes_state.search.candidates import BEYOND, CHUNK_IDS, ask_index, by_ids, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.candidates import Candidate, IndexAnswer, SearchFilter

CONTEXT_CHARACTERS: Final = 200
CATCH_UP_SECONDS: Final = 0.3

ENDS: Final = """
    SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM messages WHERE session_id = ?
"""
BEFORE: Final = """
    SELECT role, content FROM messages WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT 1
"""
FROM: Final = """
    SELECT role, content FROM messages WHERE session_id = ? AND id >= ? ORDER BY id LIMIT 2
"""


class Searcher:
    """Searches one history."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = engine.search
        self._covers_tools = engine.settings.search_tools

    def find(
        self, wish: SearchFilter, *, by_rank: bool, limit: int, offset: int
    ) -> list[dict[str, Any]]:
        """The answers, from *offset* on."""
        if wish.session_ids:
            wish = self._engine.read(lambda reader: _within(reader, wish))
        wanted = -1 if limit < 0 else offset + limit
        found: list[Candidate] = []
        for candidate in self._answers(wish, by_rank=by_rank):
            found.append(candidate)
            if len(found) == wanted:
                break
        return [self._hit(wish, candidate) for candidate in found[offset:]]

    def _ensure_ours(self) -> None:
        """Throw an index away that belongs to another history, or to another copy of this one."""
        found = self._file.use(
            lambda c: (index_builder.mark_of(c), read_meta(c, index_builder.WITNESS))
        )
        if found is not None and not self._engine.read(lambda r: index_builder.belongs(r, *found)):
            self._file.remove()

    def fill(self, seconds: float | None = None) -> bool:
        """Bring the index up to date, for so long at most; whether it is."""
        self._ensure_ours()
        deadline = None if seconds is None else time.monotonic() + seconds
        while (left := self._fill_slice()) is not False:
            if left is None or (deadline is not None and time.monotonic() >= deadline):
                return False
        return True

    def progress(self) -> tuple[int, int] | None:
        """How far the index is: message ids done and in all; None when complete."""
        mark = self._file.use(index_builder.mark_of)
        newest = self._engine.read(index_builder.newest)
        return None if mark == newest else (mark or 0, newest)

    def _fill_slice(self) -> bool | None:
        """Index a few messages: whether more are left; None if the file cannot be used."""
        mark = self._file.use(index_builder.mark_of)
        if mark is None:
            return None
        part = self._engine.read(
            lambda reader: index_builder.read_slice(reader, mark, with_tools=self._covers_tools)
        )
        if part.through == mark:
            return False
        done = self._file.use(lambda c: index_builder.put(c, part, with_tools=self._covers_tools))
        return done or None

    def _answers(self, wish: SearchFilter, *, by_rank: bool) -> Iterator[Candidate]:
        self.fill(CATCH_UP_SECONDS)
        first = self._ask(wish, 0 if by_rank or wish.oldest_first else BEYOND, by_rank=by_rank)
        if first is None or (wish.with_tools and not self._covers_tools):
            yield from scan(self._engine.read, wish, above=0, below=BEYOND)
            return
        tail = scan(self._engine.read, wish, above=first.through, below=BEYOND)
        if not wish.oldest_first:
            yield from tail
        yield from self._from_index(wish, first, by_rank=by_rank)
        if wish.oldest_first:
            yield from tail

    def _ask(self, wish: SearchFilter, position: int, *, by_rank: bool) -> IndexAnswer | None:
        return self._file.use(
            lambda connection: ask_index(
                connection, wish, position=position, limit=CHUNK_IDS, by_rank=by_rank
            )
        )

    def _from_index(
        self, wish: SearchFilter, answer: IndexAnswer, *, by_rank: bool
    ) -> Iterator[Candidate]:
        seen = 0
        while True:
            ids = [number for number in answer.ids if number <= answer.through]
            for candidate in self._engine.read(lambda reader, i=ids: by_ids(reader, i)):  # type: ignore[misc]
                if wish.allows(candidate):
                    yield candidate
            seen += len(answer.ids)
            if answer.is_all:
                return
            following = self._ask(wish, seen if by_rank else answer.ids[-1], by_rank=by_rank)
            if following is None:
                return
            answer = following

    def _hit(self, wish: SearchFilter, candidate: Candidate) -> dict[str, Any]:
        row = candidate.row

        def around(reader: Reader) -> list[tuple[Any, ...]]:
            before = reader.rows(BEFORE, (row.session_id, row.id))
            return before + reader.rows(FROM, (row.session_id, row.id))

        hit = candidate.as_hit(wish.query, with_tools=wish.with_tools)
        hit["context"] = [
            {"role": role, "content": plain_text(decode_content(content))[:CONTEXT_CHARACTERS]}
            for role, content in self._engine.read(around)
        ]
        return hit


def _within(reader: Reader, wish: SearchFilter) -> SearchFilter:
    """The wish with the range of ids that its conversation's rows have."""
    ends: list[Any] = [reader.row(ENDS, (one,)) for one in wish.session_ids]
    return wish._replace(first_id=min(e[0] for e in ends), last_id=max(e[1] for e in ends))
