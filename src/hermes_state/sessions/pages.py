"""Paged lists of conversations; the cost depends on the page size, not on the history.

Pages use keyset pagination by last activity and ID, so rows that are added or removed in
the meantime neither repeat nor hide others. Each value of `shown` is read in index order,
and the results are merged.
"""

from __future__ import annotations

import heapq
import itertools
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.delivery import leases
from hermes_state.engine.dialect import prefix_pattern, substring_pattern
from hermes_state.repository import Repository
from hermes_state.sessions import index, lists, trash
from hermes_state.sessions.labels import TAG_TABLE, tags_of
from hermes_state.sessions.lists import SessionFilter
from hermes_state.sessions.records import (
    COLUMNS,
    ListedSession,
    PagedSession,
    SessionRow,
    listed_columns,
    other_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader
    from hermes_state.engine.values import SqlValue

MAX_UNINDEXED_SESSIONS: Final = 1000
ACTIVE: Final = "active"
ARCHIVED: Final = "archived"
TRASH: Final = "trash"
KEPT: Final = "kept"
ALL_STATES: Final = "all"

# The trash contains all rows of a conversation; the last one represents it.
IS_TIP = """
    i.kind IN ('root', 'branch', 'reset', 'continuation') AND NOT EXISTS (
        SELECT 1 FROM sessions c JOIN hermes_session_index ci ON ci.session_id = c.id
        WHERE c.parent_session_id = s.id AND ci.kind = 'continuation')
"""
IS_IN_CONVERSATIONS = """
    i.root_id IN (SELECT root_id FROM hermes_session_index
                  WHERE session_id IN (SELECT value FROM json_each(?)))
"""
HAS_TAGS = """
    i.root_id IN (SELECT session_id FROM hermes_tag
                  WHERE folded IN (SELECT value FROM json_each(?))
                  GROUP BY session_id HAVING count(*) = ?)
"""
DURATION = """
    (i.last_activity - coalesce(
        nullif((SELECT r.started_at FROM sessions r WHERE r.id = i.root_id), 0), s.started_at))
"""
IS_PINNED = "s.pinned <> 0"
IS_PINNED_EXTRA = """
    s.id IN (SELECT session_id FROM hermes_session_extra
             WHERE name = 'pinned' AND CAST(value AS INTEGER) <> 0)
"""
ANY_SESSION: Final = SessionFilter(include_children=True, include_archived=True)


class PagePosition(NamedTuple):
    """The row after which a page begins."""

    last_active: float
    session_id: str


class SessionPageFilter(NamedTuple):
    """Filter of a page; unset fields match everything.

    `state` is active, archived, kept (both of these), trash or all. `ids` identify
    conversations by any of their rows; with `children`, rows that are not listed on their
    own are included, and `ids` are row IDs. The duration of a conversation, from the start
    of its first row to its last activity, is at least `min_seconds` and less than
    `max_seconds`.
    """

    state: str = ACTIVE
    sources: tuple[str, ...] = ()
    model: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    is_pinned: bool | None = None
    folder: str | None = None
    since: float | None = None
    until: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    ids: frozenset[str] | None = None
    children: bool = False

    @property
    def shown(self) -> tuple[int, ...]:
        """The values of `shown` in the index that match."""
        listed = (index.INNER, index.LISTED) if self.children else (index.LISTED,)
        if self.state == TRASH:
            return (index.TRASHED,)
        return (*listed, index.TRASHED) if self.state == ALL_STATES else listed

    @property
    def session_filter(self) -> SessionFilter:
        """The equivalent filter of unpaged lists, as far as it exists."""
        return SessionFilter(
            sources=self.sources,
            cwd_prefix=self.folder,
            min_message_count=self.min_messages or 0,
            include_children=self.children,
            include_archived=self.state in (KEPT, ALL_STATES),
            archived_only=self.state == ARCHIVED,
            trashed_only=self.state == TRASH,
            model=self.model,
            active_since=self.since,
            active_until=self.until,
        )

    def conditions(self, reader: Reader, shown: int) -> tuple[str, list[SqlValue]]:
        """The WHERE clause for a value of `shown`, over `sessions s` and the index `i`."""
        folder = "" if self.folder is None else self.folder.rstrip("/")
        clauses: list[tuple[bool, str, tuple[SqlValue, ...]]] = [
            (True, "i.shown = ?", (shown,)),
            (shown != index.TRASHED and self.state == ACTIVE, "s.archived = 0", ()),
            (shown != index.TRASHED and self.state == ARCHIVED, "s.archived <> 0", ()),
            (shown == index.TRASHED and not self.children, IS_TIP, ()),
            (self.since is not None, "i.last_activity >= ?", (self.since,)),
            (self.until is not None, "i.last_activity < ?", (self.until,)),
            (bool(self.sources), "s.source IN (SELECT value FROM json_each(?))",
             (json.dumps(self.sources),)),
            (self.model is not None, "instr(lower(s.model), lower(?)) > 0", (self.model,)),
            (self.name is not None, "s.title LIKE ? ESCAPE '\\'",
             (substring_pattern(self.name or ""),)),
            (self.folder is not None, "(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')",
             (folder, prefix_pattern(f"{folder}/"))),
            (self.min_messages is not None, "s.message_count >= ?", (self.min_messages,)),
            (self.max_messages is not None, "s.message_count <= ?", (self.max_messages,)),
            (self.min_seconds is not None, f"{DURATION} >= ?", (self.min_seconds,)),
            (self.max_seconds is not None, f"{DURATION} < ?", (self.max_seconds,)),
        ]  # fmt: skip
        clauses += self._set_clauses(reader)
        active = [(sql, values) for is_set, sql, values in clauses if is_set]
        return " AND ".join(sql for sql, _ in active), [v for _, values in active for v in values]

    def _set_clauses(self, reader: Reader) -> list[tuple[bool, str, tuple[SqlValue, ...]]]:
        pinned = IS_PINNED if reader.columns.session_has("pinned") else IS_PINNED_EXTRA
        folded = sorted({tag.casefold() for tag in self.tags})
        has_tags = HAS_TAGS if TAG_TABLE in reader.columns.tables else "0 AND ? <> ?"
        by_id = (
            "i.session_id IN (SELECT value FROM json_each(?))"
            if self.children
            else IS_IN_CONVERSATIONS
        )
        return [
            (self.is_pinned is True, pinned, ()),
            (self.is_pinned is False, f"NOT ({pinned})", ()),
            (bool(folded), has_tags, (json.dumps(folded), len(folded))),
            (self.ids is not None, by_id, (json.dumps(sorted(self.ids or ())),)),
        ]

    def matches(self, row: ListedSession, tags: Sequence[str]) -> bool:
        """The conditions beyond `session_filter`, for a row that is not indexed."""
        session = row.session
        max_messages = self.max_messages
        duration = row.last_active - session.started_at
        return (
            (self.name is None or self.name.lower() in (session.title or "").lower())
            and (self.is_pinned is None or bool(session.pinned) == self.is_pinned)
            and (max_messages is None or session.message_count <= max_messages)
            and (self.min_seconds is None or duration >= self.min_seconds)
            and (self.max_seconds is None or duration < self.max_seconds)
            and {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in tags}
            and (self.ids is None or session.id in self.ids or row.root_id in self.ids)
        )


class SessionPage(NamedTuple):
    """A page of a list, and the position after which the next page begins, if any."""

    rows: list[PagedSession]
    next: PagePosition | None


class PageRow(NamedTuple):
    """A session on a page, as it is stored."""

    listed: ListedSession
    trashed_at: float | None = None
    trashed_title: str | None = None


def read_page(
    reader: Reader, choice: SessionPageFilter, limit: int, after: PagePosition | None
) -> list[PageRow]:
    """Indexed rows of a list, most recent first."""
    by_shown = [_read_shown(reader, choice, shown, limit, after) for shown in choice.shown]
    merged = heapq.merge(*by_shown, key=_sort_key, reverse=True)
    return list(itertools.islice(merged, limit))


def _sort_key(row: PageRow) -> tuple[float, str]:
    return row.listed.last_active, row.listed.session.id


def _read_shown(
    reader: Reader, choice: SessionPageFilter, shown: int, limit: int, after: PagePosition | None
) -> list[PageRow]:
    where, values = choice.conditions(reader, shown)
    if after is not None:
        where += " AND (i.last_activity, i.session_id) < (?, ?)"
        values += after
    sql = (
        f"{reader.prepared(_select)} WHERE {where}"
        " ORDER BY i.last_activity DESC, i.session_id DESC LIMIT ?"
    )
    return _read_rows(reader, sql, (*values, limit))


def _read_rows(reader: Reader, sql: str, values: Sequence[SqlValue]) -> list[PageRow]:
    known = len(COLUMNS)
    end = known + len(reader.prepared(other_columns))
    rows = []
    for row in reader.execute(sql, values):
        session = SessionRow._make(row[:known] + (row[known:end],))  # noqa: RUF005 - faster
        rows.append(PageRow(ListedSession(session, *row[end : end + 4]), *row[end + 4 :]))
    return rows


def _select(columns: Columns) -> str:
    return (
        f"SELECT {listed_columns(columns)}, coalesce(i.preview, ''), i.last_activity,"  # noqa: S608
        " i.root_id, i.kind, t.trashed_at, t.title"
        " FROM hermes_session_index i CROSS JOIN sessions s ON s.id = i.session_id"
        " LEFT JOIN hermes_trash t ON t.session_id = i.session_id"
    )


def read_items(reader: Reader, session_ids: Sequence[str]) -> list[PageRow]:
    """Rows by ID, in any state; those that are not indexed are computed."""
    items: list[PageRow] = []
    for session_id in session_ids:
        rows = []
        if reader.columns.has_own_tables:
            sql = f"{reader.prepared(_select)} WHERE i.session_id = ?"
            rows = _read_rows(reader, sql, (session_id,))
        items += rows or map(PageRow, lists.list_computed(reader, ANY_SESSION, [session_id]))
    return items


def count(reader: Reader, choice: SessionPageFilter) -> int:
    """Number of matching conversations."""
    total = 0
    for shown in choice.shown:
        where, values = choice.conditions(reader, shown)
        join = " JOIN sessions s ON s.id = i.session_id" if "s." in where else ""
        sql = f"SELECT count(*) FROM hermes_session_index i{join} WHERE {where}"  # noqa: S608
        total += int(reader.value(sql, values))
    return total


def read_unindexed(
    reader: Reader, choice: SessionPageFilter, after: PagePosition | None
) -> list[PageRow]:
    """Matching rows that are not indexed yet."""
    ids = lists.unindexed(reader, choice.session_filter._replace(limit=MAX_UNINDEXED_SESSIONS))
    rows = list(lists.list_computed(reader, choice.session_filter, ids[:MAX_UNINDEXED_SESSIONS]))
    rows = with_root_start(reader, lists.with_listed_extras(reader, rows))
    tags = tags_of(reader, [row.root_id for row in rows])
    return [
        PageRow(row)
        for row in rows
        if choice.matches(row, tags.get(row.root_id, ()))
        and (after is None or _sort_key(PageRow(row)) < tuple(after))
    ]


def with_details(reader: Reader, rows: list[PageRow], running: set[str]) -> list[PagedSession]:
    """Rows with tags, whether a turn is running, and when the conversation started."""
    listed = lists.with_listed_extras(reader, [row.listed for row in rows])
    listed = with_root_start(reader, listed)
    tags = tags_of(reader, [row.root_id for row in listed])
    return [
        _item(row._replace(listed=shown), tags.get(shown.root_id, []), running)
        for row, shown in zip(rows, listed, strict=True)
    ]


def _item(row: PageRow, tags: list[str], running: set[str]) -> PagedSession:
    session, preview, last_active, root_id, kind, _ = row.listed
    if not session.title and row.trashed_title:
        session = session._replace(title=row.trashed_title)
    last_read = session.last_read_at
    unread = last_read is not None and last_active > float(last_read)
    is_running = session.id in running
    return PagedSession(
        session, preview, last_active, root_id, kind, unread, tags, is_running, row.trashed_at
    )


def with_root_start(reader: Reader, rows: list[ListedSession]) -> list[ListedSession]:
    """Rows whose `started_at` is the start of their conversation."""
    return [_with_root_start(reader, row) for row in rows]


def _with_root_start(reader: Reader, row: ListedSession) -> ListedSession:
    session = row.session
    if row.root_id == session.id:
        return row
    started_at = reader.value(lists.STARTED_AT, (row.root_id,)) or session.started_at
    return row._replace(session=session._replace(started_at=started_at))


class PageRepository(Repository):
    """Paged lists of conversations."""

    def page(
        self,
        choice: SessionPageFilter | None = None,
        limit: int = 100,
        after: PagePosition | None = None,
    ) -> SessionPage:
        """Conversations by last activity, most recent first, after the position *after*.

        The cost depends on the page, not on the history. `choice` is a
        `hermes_state.sessions.pages.SessionPageFilter`: state, sources, model, tags,
        is_pinned, folder, since, until, min_messages, max_messages, min_seconds,
        max_seconds (from the start of its first row to its last activity), ids, children;
        the state is active, archived, kept (both), trash or all. `next` is
        the position at which the next page starts.
        """
        page_filter = choice or SessionPageFilter()

        def read(reader: Reader) -> SessionPage:
            has_index = reader.columns.has_own_tables
            rows = read_page(reader, page_filter, limit + 1, after) if has_index else []
            if unindexed := read_unindexed(reader, page_filter, after):
                rows = sorted(rows + unindexed, key=_sort_key, reverse=True)
            running = leases.running_sessions(reader, self.identity, self.clock)
            page = with_details(reader, rows[:limit], running)
            has_more = len(rows) > limit and bool(page)
            last = page[-1] if has_more else None
            position = None if last is None else PagePosition(last.last_active, last.id)
            return SessionPage(page, position)

        lists.refresh_index(self.engine)
        return self.engine.read(read)

    def count(self, choice: SessionPageFilter | None = None) -> int:
        """Number of matching conversations in the index."""
        page_filter = choice or SessionPageFilter()
        return self.engine.read(lambda reader: count(reader, page_filter))

    def items(self, session_ids: Sequence[str]) -> list[PagedSession]:
        """These rows in the format of `session_page`, in any state."""

        def read(reader: Reader) -> list[PagedSession]:
            running = leases.running_sessions(reader, self.identity, self.clock)
            return with_details(reader, read_items(reader, session_ids), running)

        lists.refresh_index(self.engine)
        return self.engine.read(read)

    def family_in_trash(self, session_id: str) -> list[str]:
        """The rows of a conversation in the trash, with the tasks delegated from it."""

        def read(reader: Reader) -> list[str]:
            family = trash.rows_with_delegates(reader, session_id)
            return [
                row_id for row_id in family if reader.value(trash.TRASHED_AT, (row_id,)) is not None
            ]

        return self.engine.read(read)
