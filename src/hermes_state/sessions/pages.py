"""Paged lists of conversations; the cost depends on the page size, not on the history.

Pages use keyset pagination by the value that the list is sorted by, and ID, so rows that are
added or removed in the meantime neither repeat nor hide others. Each value of `shown` is read
in index order, and the results are merged.
"""

from __future__ import annotations

import heapq
import itertools
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.delivery import leases
from hermes_state.engine.dialect import DIALECT
from hermes_state.engine.values import amount_sql
from hermes_state.repository import Repository
from hermes_state.sessions import index, lists, sort_values, trash
from hermes_state.sessions.labels import tags_of
from hermes_state.sessions.lists import SessionFilter
from hermes_state.sessions.page_filter import SessionPageFilter
from hermes_state.sessions.records import (
    COLUMNS,
    ListedSession,
    PagedSession,
    SessionRow,
    listed_columns,
    other_columns,
)
from hermes_state.sessions.sort_values import (
    BY_LAST_ACTIVITY,
    LAST_ACTIVE,
    NOT_COUNTED,
    SORT_COLUMNS,
    PageOrder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader
    from hermes_state.engine.values import SqlValue
    from hermes_state.repository import StoreContext

MAX_UNINDEXED_SESSIONS: Final = 1000
ANY_SESSION: Final = SessionFilter(include_children=True, include_archived=True)


class PagePosition(NamedTuple):
    """The row after which a page begins: the value that the list is sorted by, and its ID."""

    value: float
    session_id: str


class SessionPage(NamedTuple):
    """A page of a list, and the position after which the next page begins, if any."""

    rows: list[PagedSession]
    next: PagePosition | None


class Counts(NamedTuple):
    """The numbers of conversations by filter, at a version of the history."""

    version: int | None
    numbers: dict[SessionPageFilter, int]


class PageRow(NamedTuple):
    """A session on a page, as it is stored, with the value that the list is sorted by."""

    listed: ListedSession
    trashed_at: float | None = None
    trashed_title: str | None = None
    tool_errors: int = NOT_COUNTED
    value: float = 0.0


class SortSql(NamedTuple):
    """How a list is sorted: the tables in the order in which they are read, and the value."""

    tables: str
    value: str
    session_id: str


BY_ACTIVITY: Final = SortSql(
    f"hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id"
    " LEFT JOIN hermes_session_sort o ON o.session_id = i.session_id",
    "i.last_activity",
    "i.session_id",
)
BY_SORT_VALUE: Final = (
    "hermes_session_sort o"
    f" {DIALECT.join_in_order} hermes_session_index i ON i.session_id = o.session_id"
    f" {DIALECT.join_in_order} sessions s ON s.id = i.session_id"
)


def sort_sql(reader: Reader, key: str, *, is_current: bool) -> SortSql:
    """The tables and the value of a list; *is_current*: whether sort values are up to date."""
    if key == LAST_ACTIVE:
        return BY_ACTIVITY
    if is_current:
        return SortSql(BY_SORT_VALUE, f"o.{SORT_COLUMNS[key]}", "o.session_id")
    computed = reader.prepared(sort_values.computed_values).get(key)
    return BY_ACTIVITY._replace(value=computed or f"coalesce(o.tool_errors, {NOT_COUNTED})")


def read_page(
    reader: Reader,
    choice: SessionPageFilter,
    limit: int,
    after: PagePosition | None,
    order: PageOrder = BY_LAST_ACTIVITY,
    *,
    is_current: bool = False,
) -> list[PageRow]:
    """Indexed rows of a list, in its order."""
    by_shown = [
        _read_shown(
            reader, choice, shown, limit, after, order,
            # The trash is small: it is read and sorted.
            sort_sql(reader, order.key, is_current=is_current and shown != index.TRASHED),
        )
        for shown in choice.shown
    ]  # fmt: skip
    merged = heapq.merge(*by_shown, key=_sort_key, reverse=not order.is_ascending)
    return list(itertools.islice(merged, limit))


def _sort_key(row: PageRow) -> tuple[float, str]:
    return row.value, row.listed.session.id


def _read_shown(
    reader: Reader,
    choice: SessionPageFilter,
    shown: int,
    limit: int,
    after: PagePosition | None,
    order: PageOrder,
    sort: SortSql,
) -> list[PageRow]:
    where, values = choice.conditions(reader, shown)
    sign, direction = (">", "ASC") if order.is_ascending else ("<", "DESC")
    if after is not None:
        where += f" AND ({sort.value}, {sort.session_id}) {sign} (?, ?)"
        values += after
    sql = (
        f"{reader.prepared(_select)}, {sort.value} FROM {sort.tables}{JOIN_TRASH} WHERE {where}"
        f" ORDER BY {sort.value} {direction}, {sort.session_id} {direction} LIMIT ?"
    )
    return _read_rows(reader, sql, (*values, limit))


def _read_rows(reader: Reader, sql: str, values: Sequence[SqlValue]) -> list[PageRow]:
    known = len(COLUMNS)
    end = known + len(reader.prepared(other_columns))
    rows = []
    for row in reader.rows(sql, values):
        session = SessionRow._make(row[:known] + (row[known:end],))  # noqa: RUF005 - faster
        rows.append(PageRow(ListedSession(session, *row[end : end + 4]), *row[end + 4 :]))
    return rows


# Only rows that follow others have another root.
ROWS_OF_ROOTS: Final = """
    SELECT session_id FROM hermes_session_index
    WHERE root_id <> session_id AND root_id IN (SELECT value FROM json_each(?))
"""
JOIN_TRASH: Final = " LEFT JOIN hermes_trash t ON t.session_id = i.session_id"


def _select(columns: Columns) -> str:
    return (
        f"SELECT {listed_columns(columns)}, coalesce(i.preview, ''),"
        f" {amount_sql('i.last_activity')},"
        f" i.root_id, i.kind, t.trashed_at, t.title, coalesce(o.tool_errors, {NOT_COUNTED})"
    )


def read_items(reader: Reader, session_ids: Sequence[str]) -> list[PageRow]:
    """Rows by ID, in any state; those that are not indexed are computed."""
    items: list[PageRow] = []
    for session_id in session_ids:
        rows = []
        if reader.columns.has_own_tables:
            sql = (
                f"{reader.prepared(_select)} FROM {BY_ACTIVITY.tables}{JOIN_TRASH}"
                " WHERE i.session_id = ?"
            )
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
    reader: Reader, choice: SessionPageFilter, after: PagePosition | None, order: PageOrder
) -> list[PageRow]:
    """Matching rows that are not indexed yet."""
    ids = lists.unindexed(reader, choice.session_filter._replace(limit=MAX_UNINDEXED_SESSIONS))
    rows = list(lists.list_computed(reader, choice.session_filter, ids[:MAX_UNINDEXED_SESSIONS]))
    rows = with_root_start(reader, lists.with_listed_extras(reader, rows))
    tags = tags_of(reader, [row.root_id for row in rows])
    matching = [
        PageRow(row, value=sort_values.value_of(row, order.key))
        for row in rows
        if choice.matches(row, tags.get(row.root_id, ()))
    ]
    return [row for row in matching if after is None or _is_after(row, after, order)]


def _is_after(row: PageRow, after: PagePosition, order: PageOrder) -> bool:
    key, position = _sort_key(row), (after.value, after.session_id)
    return key > position if order.is_ascending else key < position


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
    tool_errors = None if row.tool_errors == NOT_COUNTED else row.tool_errors
    return PagedSession(
        session, preview, last_active, root_id, kind, unread, tags, is_running, row.trashed_at,
        tool_errors,
    )  # fmt: skip


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

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        # The version of the history at which nothing was left to index, and to sort.
        self._indexed_version: int | None = None
        self._sorted_version: int | None = None
        self._counts = Counts(None, {})

    def page(
        self,
        choice: SessionPageFilter | None = None,
        limit: int = 100,
        after: PagePosition | None = None,
        order: PageOrder = BY_LAST_ACTIVITY,
    ) -> SessionPage:
        """Conversations after the position *after*, by default the most recently active first.

        The cost depends on the page, not on the history. `choice` is a
        `hermes_state.sessions.page_filter.SessionPageFilter`: state, sources, model, tags,
        is_pinned, folder, branch, since, until, min_messages, max_messages, min_seconds,
        max_seconds (from the start of its first row to its last activity), ids, children;
        the state is active, archived, kept (both), trash or all. `order` names what the list
        is sorted by: last_active, started, messages, tokens, cost or tool_errors. `next` is
        the position at which the next page starts.
        """
        page_filter = choice or SessionPageFilter()
        is_indexed = self._refresh_index()
        is_current = order.key != LAST_ACTIVE and self._refresh_sort_values()

        def read(reader: Reader) -> SessionPage:
            rows = []
            if reader.columns.has_own_tables:
                rows = read_page(
                    reader, page_filter, limit + 1, after, order, is_current=is_current
                )
            if not is_indexed and (unindexed := read_unindexed(reader, page_filter, after, order)):
                rows = sorted(rows + unindexed, key=_sort_key, reverse=not order.is_ascending)
            running = leases.running_sessions(reader, self.identity, self.clock)
            page = with_details(reader, rows[:limit], running)
            has_more = len(rows) > limit and bool(page)
            last = rows[limit - 1] if has_more else None
            position = None if last is None else PagePosition(last.value, last.listed.id)
            return SessionPage(page, position)

        return self.engine.read(read)

    def _refresh_index(self) -> bool:
        """Index what other programs wrote; whether every session is indexed."""
        version = self.engine.version()
        if version != self._indexed_version:
            lists.refresh_index(self.engine)
            is_complete = not self.engine.read(lambda r: lists.unindexed(r, SessionFilter()))
            self._indexed_version = version if is_complete else None
        return self._indexed_version is not None

    def _refresh_sort_values(self) -> bool:
        """Update what lists are sorted by; whether it is current."""
        version = self.engine.version()
        if version != self._sorted_version:
            is_current = sort_values.refresh(self.engine)
            self._sorted_version = version if is_current else None
        return self._sorted_version is not None

    def count(self, choice: SessionPageFilter | None = None) -> int:
        """Number of matching conversations in the index."""
        page_filter = choice or SessionPageFilter()
        version = self.engine.version()
        if version != self._counts.version:
            self._counts = Counts(version, {})
        numbers = self._counts.numbers  # of this version, also if another thread replaces them
        if page_filter not in numbers:
            numbers[page_filter] = self.engine.read(lambda reader: count(reader, page_filter))
        return numbers[page_filter]

    def rows_of(self, choice: SessionPageFilter) -> frozenset[str]:
        """All rows of the matching conversations."""

        def read(reader: Reader) -> frozenset[str]:
            roots: set[str] = set()
            for shown in choice.shown:
                where, values = choice.conditions(reader, shown)
                sql = f"SELECT i.root_id FROM {BY_ACTIVITY.tables} WHERE {where}"  # noqa: S608
                roots |= {row[0] for row in reader.rows(sql, values)}
            rows = reader.rows(ROWS_OF_ROOTS, (json.dumps(sorted(roots)),))
            return frozenset(roots).union(row[0] for row in rows)

        self._refresh_index()
        return self.engine.read(read)

    def items(self, session_ids: Sequence[str]) -> list[PagedSession]:
        """These rows in the format of `session_page`, in any state."""

        def read(reader: Reader) -> list[PagedSession]:
            running = leases.running_sessions(reader, self.identity, self.clock)
            return with_details(reader, read_items(reader, session_ids), running)

        self._refresh_index()
        return self.engine.read(read)

    def family_in_trash(self, session_id: str) -> list[str]:
        """The rows of a conversation in the trash, with the tasks delegated from it."""

        def read(reader: Reader) -> list[str]:
            family = trash.rows_with_delegates(reader, session_id)
            return [
                row_id for row_id in family if reader.value(trash.TRASHED_AT, (row_id,)) is not None
            ]

        return self.engine.read(read)
