"""Search results by conversation, with their numbers."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.search.hits import AS_WRITTEN
from hermes_state.search.query import as_inside

if TYPE_CHECKING:
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.candidates import Candidate, SearchFilter
    from hermes_state.search.hits import Correction, FoundMessage
    from hermes_state.search.ladder import Found
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.repository import SearchOptions
    from hermes_state.search.searcher import Searcher
    from hermes_state.search.titles import TitleList

MAX_COUNTED_HITS: Final = 1000
MAX_TITLES: Final = 50
HITS_PER_CONVERSATION: Final = 3

# A conversation may have several rows; the listed one represents it.
LISTED_ROWS: Final = """
    SELECT i.session_id, coalesce(l.session_id, i.session_id)
    FROM hermes_session_index i
    LEFT JOIN hermes_session_index l ON l.root_id = i.root_id AND l.shown = 1
        AND l.root_id <> l.session_id AND i.shown <> 1
    WHERE i.session_id IN (SELECT value FROM json_each(?))
"""


class ConversationHits(NamedTuple):
    """A conversation that matches, with the number of its hits and the best or latest of them."""

    session_id: str
    is_title_match: bool
    hit_count: int
    hits: list[FoundMessage]


class DayHits(NamedTuple):
    """The number of hits of a day, in local time."""

    day: date
    hits: int


class GroupedHits(NamedTuple):
    """A page of conversations, and the numbers of all results."""

    items: list[ConversationHits]
    hit_count: int
    conversation_count: int
    is_capped: bool  # there are more hits than were counted
    sort: str
    step: str
    words: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    days: tuple[DayHits, ...] = ()


NO_HITS: Final = GroupedHits([], 0, 0, is_capped=False, sort="newest", step=AS_WRITTEN)


def find(
    engine: Engine,
    searcher: Searcher | DatabaseSearcher,
    search_filter: SearchFilter,
    found: Found,
    options: SearchOptions,
    titles: TitleList,
) -> GroupedHits:
    """The page: conversations whose title matches first, then by their best or latest hit."""
    counted = list(itertools.islice(found.candidates, MAX_COUNTED_HITS + 1))
    pairs = [(candidate.row.id, candidate.row.session_id) for candidate in counted]
    is_capped = len(pairs) > MAX_COUNTED_HITS
    listed = engine.read(lambda reader: listed_rows(reader, {row for _, row in pairs}))
    titled: list[str] = []
    if options.since is None and options.until is None:
        query = as_inside(search_filter.query)
        titled = titles.find(engine, query, MAX_TITLES)
        titled = [row for row in titled if _is_allowed(engine, row, search_filter)]
    by_conversation: dict[str, list[int]] = {row: [] for row in titled}
    for message_id, session_id in pairs[:MAX_COUNTED_HITS]:
        by_conversation.setdefault(listed.get(session_id, session_id), []).append(message_id)
    page = list(by_conversation.items())[options.offset : options.offset + options.limit]
    shown = {row_id for _, ids in page for row_id in ids[:HITS_PER_CONVERSATION]}
    shown_filter = search_filter._replace(query=found.query)
    shown_hits = searcher.hits(shown_filter, [each for each in counted if each.row.id in shown])
    hits = {hit.id: hit for hit in shown_hits}
    title_set = set(titled)
    return GroupedHits(
        [
            ConversationHits(
                session_id,
                session_id in title_set,
                len(ids),
                [hits[row] for row in ids[:HITS_PER_CONVERSATION]],
            )
            for session_id, ids in page
        ],
        min(len(pairs), MAX_COUNTED_HITS),
        len(by_conversation),
        is_capped,
        found.sort,
        found.step,
        found.words,
        found.corrections,
        _days(counted[:MAX_COUNTED_HITS]),
    )


def _days(counted: list[Candidate]) -> tuple[DayHits, ...]:
    """The days with hits, in order."""
    numbers = Counter(day for each in counted if (day := _day_of(each.row.at)) is not None)
    return tuple(DayHits(day, numbers[day]) for day in sorted(numbers))


def _day_of(at: float) -> date | None:
    """The day of a time; None for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(at).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None


def listed_rows(reader: Reader, session_ids: set[str]) -> dict[str, str]:
    """The listed rows of the conversations that have these rows."""
    if not session_ids or not reader.columns.has_own_tables:
        return {}
    return {row[0]: row[1] for row in reader.rows(LISTED_ROWS, (json.dumps(sorted(session_ids)),))}


def _is_allowed(engine: Engine, session_id: str, search_filter: SearchFilter) -> bool:
    if search_filter.allowed_ids is not None and session_id not in search_filter.allowed_ids:
        return False
    if not search_filter.sources:
        return True
    sql = "SELECT source FROM sessions WHERE id = ?"
    source = engine.read(lambda reader: reader.value(sql, (session_id,)))
    return source in search_filter.sources
