"""Runs searches: on the index, and by scanning messages that are not indexed yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import plain_text
from hermes_state.engine.side_file import read_meta
from hermes_state.messages.rows import decode_content
from hermes_state.search import index_builder
from hermes_state.search.candidates import CHUNK_IDS, MAX_ROW_ID, by_ids, query_index, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.candidates import Candidate, IndexResult, SearchFilter

CONTEXT_CHARACTERS: Final = 200
CATCH_UP_SECONDS: Final = 0.3

ID_RANGE: Final = """
    SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM messages WHERE session_id = ?
"""
PRECEDING: Final = """
    SELECT role, content FROM messages WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT 1
"""
FOLLOWING: Final = """
    SELECT role, content FROM messages WHERE session_id = ? AND id >= ? ORDER BY id LIMIT 2
"""


class Searcher:
    """Searches one history."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = engine.search
        self._covers_tools = engine.settings.search_tools

    def find(
        self, search_filter: SearchFilter, *, by_rank: bool, limit: int, offset: int
    ) -> list[dict[str, Any]]:
        """Matching messages, starting at *offset*."""
        if search_filter.session_ids:
            search_filter = self._engine.read(lambda reader: _with_id_range(reader, search_filter))
        count = -1 if limit < 0 else offset + limit
        matches: list[Candidate] = []
        for candidate in self._candidates(search_filter, by_rank=by_rank):
            matches.append(candidate)
            if len(matches) == count:
                break
        return [self._hit(search_filter, candidate) for candidate in matches[offset:]]

    def _check_history(self) -> None:
        """Delete an index that belongs to another history, or to another copy of this one."""
        state = self._file.use(
            lambda c: (index_builder.read_watermark(c), read_meta(c, index_builder.WITNESS_KEY))
        )
        if state is not None and not self._engine.read(
            lambda r: index_builder.matches_history(r, *state)
        ):
            self._file.remove()

    def fill(self, seconds: float | None = None) -> bool:
        """Update the index for at most *seconds*; whether it is complete."""
        self._check_history()
        deadline = None if seconds is None else time.monotonic() + seconds
        while (has_more := self._fill_slice()) is not False:
            if has_more is None or (deadline is not None and time.monotonic() >= deadline):
                return False
        return True

    def progress(self) -> tuple[int, int] | None:
        """Indexed and total message IDs; None when the index is complete."""
        watermark = self._file.use(index_builder.read_watermark)
        newest = self._engine.read(index_builder.newest_id)
        return None if watermark == newest else (watermark or 0, newest)

    def _fill_slice(self) -> bool | None:
        """Index a slice: whether more messages are left; None if the file is unusable."""
        watermark = self._file.use(index_builder.read_watermark)
        if watermark is None:
            return None
        next_slice = self._engine.read(
            lambda reader: index_builder.read_slice(
                reader, watermark, with_tools=self._covers_tools
            )
        )
        if next_slice.through == watermark:
            return False
        done = self._file.use(
            lambda c: index_builder.index_slice(c, next_slice, with_tools=self._covers_tools)
        )
        return done or None

    def _candidates(self, search_filter: SearchFilter, *, by_rank: bool) -> Iterator[Candidate]:
        self.fill(CATCH_UP_SECONDS)
        first = self._query(
            search_filter,
            0 if by_rank or search_filter.oldest_first else MAX_ROW_ID,
            by_rank=by_rank,
        )
        if first is None or (search_filter.with_tools and not self._covers_tools):
            yield from scan(self._engine.read, search_filter, above=0, below=MAX_ROW_ID)
            return
        tail = scan(self._engine.read, search_filter, above=first.through, below=MAX_ROW_ID)
        if not search_filter.oldest_first:
            yield from tail
        yield from self._from_index(search_filter, first, by_rank=by_rank)
        if search_filter.oldest_first:
            yield from tail

    def _query(
        self, search_filter: SearchFilter, position: int, *, by_rank: bool
    ) -> IndexResult | None:
        return self._file.use(
            lambda connection: query_index(
                connection, search_filter, position=position, limit=CHUNK_IDS, by_rank=by_rank
            )
        )

    def _from_index(
        self, search_filter: SearchFilter, result: IndexResult, *, by_rank: bool
    ) -> Iterator[Candidate]:
        offset = 0
        while True:
            ids = [row_id for row_id in result.ids if row_id <= result.through]
            for candidate in self._engine.read(lambda reader, i=ids: by_ids(reader, i)):  # type: ignore[misc]
                if search_filter.allows(candidate):
                    yield candidate
            offset += len(result.ids)
            if result.is_all:
                return
            next_result = self._query(
                search_filter, offset if by_rank else result.ids[-1], by_rank=by_rank
            )
            if next_result is None:
                return
            result = next_result

    def _hit(self, search_filter: SearchFilter, candidate: Candidate) -> dict[str, Any]:
        row = candidate.row

        def around(reader: Reader) -> list[tuple[Any, ...]]:
            before = reader.rows(PRECEDING, (row.session_id, row.id))
            return before + reader.rows(FOLLOWING, (row.session_id, row.id))

        hit = candidate.as_hit(search_filter.query, with_tools=search_filter.with_tools)
        hit["context"] = [
            {"role": role, "content": plain_text(decode_content(content))[:CONTEXT_CHARACTERS]}
            for role, content in self._engine.read(around)
        ]
        return hit


def _with_id_range(reader: Reader, search_filter: SearchFilter) -> SearchFilter:
    """The filter with the ID range of the conversation's rows."""
    ranges: list[Any] = [
        reader.row(ID_RANGE, (session_id,)) for session_id in search_filter.session_ids
    ]
    return search_filter._replace(
        first_id=min(low for low, _ in ranges), last_id=max(high for _, high in ranges)
    )
