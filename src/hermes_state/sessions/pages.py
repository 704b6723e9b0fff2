"""Paged lists of conversations; the cost depends on the page size, not on the history.

Pages use keyset pagination by the value that the list is sorted by, and ID, so rows that are
added or removed in the meantime neither repeat nor hide others. Each value of `shown` is read
in index order, and the results are merged.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.delivery import leases
from hermes_state.engine.dialect import DIALECT, prefix_pattern, substring_pattern
from hermes_state.engine.values import amount_sql
from hermes_state.repository import Repository
from hermes_state.sessions import index, lineage, lists, sort_values, trash
from hermes_state.sessions.labels import TAG_COUNTS, TAG_TABLE, tags_of
from hermes_state.sessions.lists import SessionFilter
from hermes_state.sessions.records import (
    COLUMNS,
    FamilyMember,
    ListedSession,
    PagedSession,
    SessionRow,
    listed_columns,
    other_columns,
)
from hermes_state.sessions.rows import EXISTS
from hermes_state.sessions.sort_values import (
    BY_LAST_ACTIVITY,
    LAST_ACTIVE,
    NOT_COUNTED,
    SORT_COLUMNS,
    PageOrder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Columns, Reader
    from hermes_state.engine.values import SqlValue
    from hermes_state.repository import StoreContext


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
HAS_BRANCH = "s.git_branch = ?"
HAS_BRANCH_EXTRA = """
    s.id IN (SELECT session_id FROM hermes_session_extra WHERE name = 'git_branch' AND value = ?)
"""


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
    branch: str | None = None
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
        listed = (index.UNLISTED, index.LISTED) if self.children else (index.LISTED,)
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
            (self.name is not None, f"s.title {DIALECT.like} ? ESCAPE '\\'",
             (substring_pattern(self.name or ""),)),
            (self.folder is not None, f"(s.cwd = ? OR s.cwd {DIALECT.like} ? ESCAPE '\\')",
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
        has_branch = HAS_BRANCH if reader.columns.session_has("git_branch") else HAS_BRANCH_EXTRA
        return [
            (self.branch is not None, has_branch, (self.branch,)),
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
            and self.branch in (None, session.git_branch)
            and (max_messages is None or session.message_count <= max_messages)
            and (self.min_seconds is None or duration >= self.min_seconds)
            and (self.max_seconds is None or duration < self.max_seconds)
            and {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in tags}
            and (self.ids is None or session.id in self.ids or row.root_id in self.ids)
        )


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


# One pass over the listed rows counts sources, models, folders, branches and states.
GROUPS = f"""
    SELECT s.source, s.model, s.archived <> 0, {{folder}}, {{branch}}, count(*)
    FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id
    WHERE i.shown = 1 GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - own names
MAX_FOLDERS = 200
COUNT_TRASH = f"""
    SELECT count(*)
    FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id
    WHERE i.shown = 2 AND {IS_TIP}
"""  # noqa: S608 - constant text
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"
MEMBER = """
    SELECT s.id, coalesce(s.title, t.title), s.parent_session_id, s.started_at,
           coalesce(s.message_count, 0), i.kind, i.last_activity, coalesce(i.preview, ''),
           t.trashed_at
    FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    LEFT JOIN hermes_trash t ON t.session_id = s.id
    WHERE s.id = ?
"""
MAX_RELATIVES = 2000


class Facets(NamedTuple):
    """Number of conversations by name, largest first, and by state."""

    sources: dict[str, int]
    models: dict[str, int]
    tags: dict[str, int]
    folders: dict[str, int]  # of the repository, else the working folder
    branches: dict[str, int]
    active: int
    archived: int
    trash: int


def groups_sql(columns: Columns) -> str:
    """The SELECT statement of the groups; old files have no columns for repositories."""
    root = "nullif(s.git_repo_root, ''), " if columns.session_has("git_repo_root") else ""
    branch = "s.git_branch" if columns.session_has("git_branch") else "NULL"
    return GROUPS.format(folder=f"coalesce({root}s.cwd, '')", branch=branch)


def facets(reader: Reader) -> Facets:
    """Facets of listed conversations; names of those that are not archived."""
    sources: Counter[str] = Counter()
    models: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    branches: Counter[str] = Counter()
    by_state = [0, 0]
    for source, model, is_archived, folder, branch, number in reader.rows(
        reader.prepared(groups_sql)
    ):
        by_state[is_archived] += number
        if not is_archived:
            sources[source] += number
            for counter, name in ((models, model), (folders, folder), (branches, branch)):
                if name:
                    counter[name] += number
    tags: dict[str, int] = (
        dict(reader.rows(TAG_COUNTS)) if TAG_TABLE in reader.columns.tables else {}
    )
    return Facets(
        sources=_by_count(sources),
        models=_by_count(models),
        tags=tags,
        folders=_by_count(folders, MAX_FOLDERS),
        branches=_by_count(branches, MAX_FOLDERS),
        active=by_state[0],
        archived=by_state[1],
        trash=int(reader.value(COUNT_TRASH)),
    )


def _by_count(counts: Counter[str], limit: int | None = None) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


def root_ancestor(reader: Reader, session_id: str) -> str:
    """The oldest ancestor of a session."""
    seen = {session_id}
    current = session_id
    while (parent := reader.value(PARENT, (current,))) is not None and parent not in seen:
        if reader.value(EXISTS, (parent,)) is None:
            break
        seen.add(parent)
        current = parent
    return current


def family(reader: Reader, session_id: str) -> list[FamilyMember]:
    """All sessions with the same oldest ancestor, parents before children."""
    queue = [root_ancestor(reader, session_id)]
    rows: list[FamilyMember] = []
    seen: set[str] = set()
    while queue and len(rows) < MAX_RELATIVES:
        current = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        members = map(FamilyMember._make, reader.rows(MEMBER, (current,)))
        rows += [row._replace(kind=lineage.kind_of(reader, row.id)[0]) for row in members]
        queue += [row[0] for row in reader.rows(CHILDREN, (current,))]
    return rows


class FacetRepository(Repository):
    """Facets and families of conversations."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self._latest: tuple[int, Facets] | None = None  # with the version of the history

    def facets(self) -> Facets:
        """Values to filter the listed conversations by, and the number in each state.

        Sources, models, tags, folders and branches, with their numbers of conversations.
        """
        version = self.engine.version()
        if self._latest is None or self._latest[0] != version:
            self._latest = version, self.engine.read(facets)
        return self._latest[1]

    def family(self, session_id: str) -> list[FamilyMember]:
        """All sessions with the same root, parents before children.

        Branches, continuations, delegated tasks; rows in the trash have `trashed_at`.
        """
        return self.engine.read(lambda reader: family(reader, session_id))
