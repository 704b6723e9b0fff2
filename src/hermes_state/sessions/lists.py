"""Lists of sessions, read from the index."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.dialect import DIALECT, prefix_pattern, substring_pattern
from hermes_state.engine.values import amount_sql, number_sql
from hermes_state.repository import Repository
from hermes_state.sessions import index, lineage
from hermes_state.sessions.extras import lacks_extras, with_extras
from hermes_state.sessions.records import (
    COLUMNS,
    ListedSession,
    SessionRow,
    listed_columns,
    other_columns,
    to_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue

MAX_UNINDEXED_ROWS: Final = 64
EXTRA_ROWS: Final = 50
MAX_RECENT_MESSAGES: Final = 2000

STARTED_AT = f"SELECT {number_sql('started_at')} FROM sessions WHERE id = ?"  # noqa: S608
BY_START = "SELECT id FROM sessions ORDER BY started_at DESC"
RECENTLY_WRITTEN = """
    SELECT session_id FROM (SELECT session_id, id FROM messages ORDER BY id DESC LIMIT ?)
    GROUP BY session_id ORDER BY max(id) DESC
"""

# The last activity of a session that is not indexed yet.
COMPUTED_LAST_ACTIVITY = f"""
    coalesce((SELECT max({number_sql("timestamp")}) FROM messages m WHERE m.session_id = s.id),
             {number_sql("s.ended_at")}, {amount_sql("s.started_at")})
"""  # noqa: S608 - own names


HAS_KEY = "s.session_key = ?"
# In a file whose sessions have no such column.
HAS_KEY_EXTRA = """
    s.id IN (SELECT session_id FROM hermes_session_extra WHERE name = 'session_key' AND value = ?)
"""


class SessionFilter(NamedTuple):
    """Filter, order and range of a list."""

    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    cwd_prefix: str | None = None
    min_message_count: int = 0
    include_children: bool = False
    project_tips: bool = True
    include_archived: bool = False
    archived_only: bool = False
    by_last_active: bool = False
    trashed_only: bool = False
    id_query: str | None = None
    session_key: str | None = None
    model: str | None = None
    active_since: float | None = None
    active_until: float | None = None
    limit: int = 20
    offset: int = 0

    def conditions(self, columns: Columns) -> tuple[str, list[SqlValue]]:
        """The WHERE clause over `sessions s` and the index `i`, and its values."""
        folder = None if self.cwd_prefix is None else self.cwd_prefix.rstrip("/")
        has_key = HAS_KEY if columns.session_has("session_key") else HAS_KEY_EXTRA
        clauses: list[tuple[bool, str, tuple[SqlValue, ...]]] = [
            (True, self._shown(), ()),
            (True, self._archived(), ()),
            (self._leaves_out_hidden and columns.session_has("hidden"), "s.hidden = 0", ()),
            (bool(self.sources), f"s.source IN ({_placeholders(self.sources)})", self.sources),
            (
                bool(self.exclude_sources),
                f"s.source NOT IN ({_placeholders(self.exclude_sources)})",
                self.exclude_sources,
            ),
            (self.min_message_count > 0, "s.message_count >= ?", (self.min_message_count,)),
            (
                folder is not None,
                f"(s.cwd = ? OR s.cwd {DIALECT.like} ? ESCAPE '\\')",
                (folder, prefix_pattern(f"{folder}/")),
            ),
            (
                self.id_query is not None,
                f"s.id {DIALECT.like} ? ESCAPE '\\'",
                (substring_pattern(self.id_query or ""),),
            ),
            (self.session_key is not None, has_key, (self.session_key,)),
            (self.model is not None, "instr(lower(s.model), lower(?)) > 0", (self.model,)),
            (self.active_since is not None, "i.last_activity >= ?", (self.active_since,)),
            (self.active_until is not None, "i.last_activity < ?", (self.active_until,)),
        ]
        active = [(sql, values) for is_set, sql, values in clauses if is_set]
        return " AND ".join(sql for sql, _ in active), [v for _, values in active for v in values]

    def _archived(self) -> str:
        if self.archived_only:
            return "s.archived <> 0"
        return "TRUE" if self.include_archived or self.trashed_only else "s.archived = 0"

    @property
    def _leaves_out_hidden(self) -> bool:
        """Whether sessions that hermes-agent has hidden are left out; an ID finds them."""
        return not self.trashed_only and not self.include_children and self.id_query is None

    def allows(self, hidden: int) -> bool:
        """Like the condition above, for a row in memory."""
        return not hidden or not self._leaves_out_hidden

    def _shown(self) -> str:
        if self.trashed_only:
            return "i.shown = 2"
        if self.include_children:
            return "i.shown < 2"
        if not self.project_tips:
            return "i.shown < 2 AND i.kind IN ('root', 'branch', 'reset')"
        return "i.shown = 1"


def _placeholders(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def read_listed(reader: Reader, sql: str, values: Iterable[SqlValue]) -> list[ListedSession]:
    """The rows of a statement that selects `listed_columns`, then the fields of a list."""
    known = len(COLUMNS)
    end = known + len(reader.prepared(other_columns))
    return [
        ListedSession(SessionRow._make(row[:known] + (row[known:end],)), *row[end:])  # noqa: RUF005
        for row in reader.rows(sql, tuple(values))
    ]


def list_indexed(reader: Reader, session_filter: SessionFilter) -> list[ListedSession]:
    """The indexed rows of a list."""
    where, values = session_filter.conditions(reader.columns)
    order = "i.last_activity DESC" if session_filter.by_last_active else "s.started_at DESC"
    sql = (
        f"SELECT {reader.prepared(listed_columns)}, coalesce(i.preview, ''),"  # noqa: S608
        f" {amount_sql('i.last_activity')},"
        " i.root_id, i.kind"
        f" FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id"
        f" WHERE {where} ORDER BY {order}, s.id DESC LIMIT ? OFFSET ?"
    )
    if not session_filter.by_last_active:
        sql = sql.replace(
            f"hermes_session_index i {DIALECT.join_in_order} sessions s",
            f"sessions s {DIALECT.join_in_order} hermes_session_index i",
        )
    return read_listed(reader, sql, (*values, session_filter.limit, session_filter.offset))


def count_sessions(reader: Reader, session_filter: SessionFilter) -> int:
    """The number of rows of a list without limits."""
    where, values = session_filter.conditions(reader.columns)
    index_rows = (
        "hermes_session_index"
        if reader.columns.has_own_tables
        else "(SELECT id AS session_id, 1 AS shown FROM sessions)"
    )
    joined = f"{index_rows} i JOIN sessions s ON s.id = i.session_id"
    sql = f"SELECT count(*) FROM {joined} WHERE {where}"  # noqa: S608 - own names
    return int(reader.value(sql, values))


def list_computed(
    reader: Reader, session_filter: SessionFilter, ids: Iterable[str]
) -> Iterator[ListedSession]:
    """The same rows for sessions that are not indexed, one by one."""
    return (_with_preview(reader, row) for row in _computed(reader, session_filter, ids))


def _with_preview(reader: Reader, row: ListedSession) -> ListedSession:
    return row._replace(preview=index.first_user_text(reader, row.session.id) or "")


def _computed(
    reader: Reader, session_filter: SessionFilter, ids: Iterable[str]
) -> Iterator[ListedSession]:
    sql = (
        f"SELECT {reader.prepared(listed_columns)}, {COMPUTED_LAST_ACTIVITY}"  # noqa: S608
        " FROM sessions s WHERE s.id = ?"
    )
    other_count = len(reader.prepared(other_columns))
    for session_id in ids:
        position = lineage.position_of(reader, session_id)
        for values in reader.rows(sql, (session_id,)):
            session, last_active = to_session(values, other_count), values[-1]
            row = ListedSession(session, "", last_active, position.root_id, position.kind)
            if matches(row, session_filter, position):
                yield row


def matches(
    row: ListedSession, session_filter: SessionFilter, position: lineage.LineagePosition
) -> bool:
    """Like `SessionFilter.conditions`, for a row in memory."""
    session = row.session
    is_listed = (
        position.is_listed if session_filter.project_tips else position.kind in lineage.LISTABLE
    )
    return (
        not session_filter.trashed_only
        and (is_listed or session_filter.include_children)
        and (not session_filter.sources or session.source in session_filter.sources)
        and session_filter.allows(session.hidden)
        and session.source not in session_filter.exclude_sources
        and session.message_count >= session_filter.min_message_count
        and _matches_archive(bool(session.archived), session_filter)
        and (
            session_filter.cwd_prefix is None
            or _is_inside(session.cwd or "", session_filter.cwd_prefix)
        )
        and (session_filter.id_query is None or session_filter.id_query in session.id)
        and session_filter.session_key in (None, session.session_key)
        and (
            session_filter.model is None
            or session_filter.model.lower() in (session.model or "").lower()
        )
        and (session_filter.active_since or 0)
        <= row.last_active
        < (session_filter.active_until or math.inf)
    )


def _matches_archive(is_archived: bool, session_filter: SessionFilter) -> bool:
    if session_filter.archived_only:
        return is_archived
    return session_filter.include_archived or not is_archived


def _is_inside(folder: str, prefix: str) -> bool:
    return folder == prefix.rstrip("/") or folder.startswith(prefix.rstrip("/") + "/")


def unindexed(reader: Reader, session_filter: SessionFilter) -> list[str]:
    """Sessions without an index row, probably most recent first."""
    if not reader.columns.has_foreign_writers:
        return []
    if reader.columns.has_own_tables:
        total, indexed = index.counts(reader)
        limit = (
            -1
            if session_filter.limit < 0
            else max(1000, 4 * (session_filter.limit + session_filter.offset))
        )
        return [] if total == indexed else index.missing_sessions(reader, limit)
    started = [row[0] for row in reader.rows(BY_START)]
    if not session_filter.by_last_active:
        return started
    recent = [row[0] for row in reader.rows(RECENTLY_WRITTEN, (MAX_RECENT_MESSAGES,))]
    return list(dict.fromkeys(recent + started))


def list_sessions(reader: Reader, session_filter: SessionFilter) -> list[ListedSession]:
    """The list, including sessions that are not indexed yet."""
    unindexed_ids = unindexed(reader, session_filter)
    if not unindexed_ids:
        rows = list_indexed(reader, session_filter)
    else:
        end = None if session_filter.limit < 0 else session_filter.limit + session_filter.offset
        from_start = session_filter._replace(limit=-1 if end is None else end, offset=0)
        rows = list_indexed(reader, from_start) if reader.columns.has_own_tables else []
        # More rows than needed: the order by activity may differ from the order by start.
        computed_limit = None if end is None else end + EXTRA_ROWS
        computed = itertools.islice(
            _computed(reader, session_filter, unindexed_ids), computed_limit
        )
        has_preview = {row.session.id for row in rows}
        rows += computed
        rows.sort(key=_by_activity if session_filter.by_last_active else _by_start, reverse=True)
        rows = [
            row if row.session.id in has_preview else _with_preview(reader, row)
            for row in rows[session_filter.offset : end]
        ]
    shows_conversations = session_filter.project_tips and not session_filter.include_children
    return [
        row
        if row.root_id == row.session.id and row.session.last_read_at is None
        else _as_listed(reader, row, shows_conversations=shows_conversations)
        for row in with_listed_extras(reader, rows)
    ]


def _by_activity(row: ListedSession) -> tuple[float, str]:
    return row.last_active, row.session.id


def _by_start(row: ListedSession) -> tuple[float, str]:
    return row.session.started_at, row.session.id


def with_listed_extras(reader: Reader, rows: list[ListedSession]) -> list[ListedSession]:
    """The rows with the values of columns that the file lacks."""
    if not lacks_extras(reader):
        return rows
    after = with_extras(reader, [row.session for row in rows])
    return [row._replace(session=session) for row, session in zip(rows, after, strict=True)]


def _as_listed(reader: Reader, row: ListedSession, *, shows_conversations: bool) -> ListedSession:
    session = row.session
    if shows_conversations and row.root_id != session.id:
        started_at = reader.value(STARTED_AT, (row.root_id,)) or session.started_at
        row = row._replace(session=session._replace(started_at=started_at))
    if session.last_read_at is not None:
        row = row._replace(unread=row.last_active > float(session.last_read_at))
    return row


class ListRepository(Repository):
    """Listing and counting sessions."""

    def sessions(
        self,
        source: str | None = None,
        exclude_sources: Sequence[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        project_compression_tips: bool = True,
        min_message_count: int = 0,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        archived_only: bool = False,
        id_query: str | None = None,
        *,
        sources: Sequence[str] | None = None,
        cwd_prefix: str | None = None,
        session_key: str | None = None,
        model: str | None = None,
        active_since: float | None = None,
        active_until: float | None = None,
        trashed_only: bool = False,
    ) -> list[ListedSession]:
        """Sessions with their preview and last activity.

        `limit=-1` means all. Rows have every column except the system prompt. A conversation
        that was continued in further rows appears once, as its last row. `active_since` and
        `active_until` bound the last activity; `model` is a part of the model's name.
        """
        session_filter = SessionFilter(
            sources=tuple(sources or ()) + ((source,) if source else ()),
            exclude_sources=tuple(exclude_sources or ()),
            cwd_prefix=cwd_prefix,
            min_message_count=min_message_count,
            include_children=include_children,
            project_tips=project_compression_tips,
            include_archived=include_archived,
            archived_only=archived_only,
            by_last_active=order_by_last_active,
            trashed_only=trashed_only,
            id_query=id_query,
            session_key=session_key,
            model=model,
            active_since=active_since,
            active_until=active_until,
            limit=limit,
            offset=offset,
        )
        refresh_index(self.engine)
        return self.engine.read(lambda reader: list_sessions(reader, session_filter))

    def search_sessions(
        self, source: str | None = None, limit: int = 20, offset: int = 0
    ) -> list[ListedSession]:
        """Sessions by last activity, most recent first."""
        return self.sessions(
            source, limit=limit, offset=offset, order_by_last_active=True, include_children=True
        )

    def search_sessions_by_id(
        self, query: str, limit: int = 20, include_archived: bool = False
    ) -> list[ListedSession]:
        """Sessions whose ID contains *query*: exact matches first, then prefixes.

        A conversation that was continued is returned once, as its last row.
        """
        rows = self.sessions(
            limit=-1, id_query=query, include_archived=include_archived, include_children=True
        )
        rows.sort(key=lambda row: (row.id != query, not row.id.startswith(query)))
        tips = dict.fromkeys(
            self.engine.read(lambda reader: [lineage.tip_of(reader, row.id) for row in rows])
        )
        by_id = {row.id: row for row in rows}
        found = [by_id.get(tip) or self.find(tip) for tip in list(tips)[:limit]]
        return [row for row in found if row is not None]

    def find(self, session_id: str) -> ListedSession | None:
        """A session as in a list, or None; also an archived one, and one that is not listed."""
        rows = self.sessions(
            limit=-1, id_query=session_id, include_archived=True, include_children=True
        )
        return next((row for row in rows if row.id == session_id), None)

    def session_count(
        self,
        source: str | None = None,
        min_message_count: int = 0,
        include_archived: bool = False,
        archived_only: bool = False,
        exclude_children: bool = False,
        exclude_sources: Sequence[str] | None = None,
    ) -> int:
        """Number of sessions; archived ones are counted on request only."""
        session_filter = SessionFilter(
            sources=(source,) if source else (),
            exclude_sources=tuple(exclude_sources or ()),
            min_message_count=min_message_count,
            include_children=not exclude_children,
            include_archived=include_archived,
            archived_only=archived_only,
        )
        refresh_index(self.engine)
        return self.engine.read(lambda reader: count_sessions(reader, session_filter))


def refresh_index(engine: Engine) -> None:
    """Index what other programs wrote, if it is little.

    The background builder does the rest.
    """
    if not engine.read_only and engine.read(index.is_stale):
        engine.write(_index_pending)


def _index_pending(tx: Tx) -> None:
    index.catch_up(tx)
    for session_id in index.missing_sessions(tx, MAX_UNINDEXED_ROWS):
        index.reindex(tx, session_id)
    total, indexed = index.counts(tx)
    if indexed > total:
        tx.execute(index.MARK_PURGED)
