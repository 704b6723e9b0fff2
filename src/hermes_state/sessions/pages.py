"""Long lists of conversations, page by page: a page costs the page, not the history.

A page goes on behind the last row of the one before, by last activity and id, so rows
that come and go meanwhile neither repeat nor hide others. Each value of `shown` is read
in the order of the index; what is asked for is merged of those.
"""

from __future__ import annotations

import heapq
import itertools
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.delivery import leases
from hermes_state.engine.dialect import beginning_with, containing
from hermes_state.sessions import index, lists, trash
from hermes_state.sessions.labels import TABLE, tags_of
from hermes_state.sessions.lists import ListPart, SessionFilter
from hermes_state.sessions.rows import listed_columns, with_extras

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader

Row = dict[str, Any]

MAX_STRANGERS: Final = 1000
ACTIVE: Final = "active"
ARCHIVED: Final = "archived"
TRASH: Final = "trash"
KEPT: Final = "kept"
EVERYTHING: Final = "all"

# In the trash lie all rows of a conversation: the last one stands for it.
IS_TIP = """
    i.kind IN ('root', 'branch', 'reset', 'continuation') AND NOT EXISTS (
        SELECT 1 FROM sessions c JOIN hermes_session_index ci ON ci.session_id = c.id
        WHERE c.parent_session_id = s.id AND ci.kind = 'continuation')
"""
IS_OF_THESE = """
    i.root_id IN (SELECT root_id FROM hermes_session_index
                  WHERE session_id IN (SELECT value FROM json_each(?)))
"""
HAS_TAGS = """
    i.root_id IN (SELECT session_id FROM hermes_tag
                  WHERE folded IN (SELECT value FROM json_each(?))
                  GROUP BY session_id HAVING count(*) = ?)
"""
ROOT_STARTED = "SELECT started_at FROM sessions WHERE id = ?"
LASTED = """
    (i.last_activity - coalesce(
        nullif((SELECT r.started_at FROM sessions r WHERE r.id = i.root_id), 0), s.started_at))
"""
IS_PINNED = "s.pinned <> 0"
IS_PINNED_BESIDE = """
    s.id IN (SELECT session_id FROM hermes_session_extra
             WHERE name = 'pinned' AND CAST(value AS INTEGER) <> 0)
"""
ANY: Final = SessionFilter(include_children=True, include_archived=True)


class PagePosition(NamedTuple):
    """The row behind which a page begins."""

    last_active: float
    session_id: str


class SessionPageFilter(NamedTuple):
    """Which conversations are wanted; what is not said does not matter.

    `state` is active, archived, kept (both of these), trash or all. `ids` name
    conversations by any of their rows; with `children`, rows that are not listed by
    themselves come too, and `ids` name rows. How long one lasted, from the start of its
    first row to its last activity, is at least `min_seconds` and less than `max_seconds`.
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
        """The values of `shown` in the index that are looked at."""
        listed = (index.INNER, index.LISTED) if self.children else (index.LISTED,)
        if self.state == TRASH:
            return (index.TRASHED,)
        return (*listed, index.TRASHED) if self.state == EVERYTHING else listed

    @property
    def wish(self) -> SessionFilter:
        """The same, as far as other lists know it."""
        return SessionFilter(
            sources=self.sources,
            cwd_prefix=self.folder,
            min_message_count=self.min_messages or 0,
            include_children=self.children,
            include_archived=self.state in (KEPT, EVERYTHING),
            archived_only=self.state == ARCHIVED,
            trashed_only=self.state == TRASH,
            model=self.model,
            active_since=self.since,
            active_until=self.until,
        )

    def conditions(self, reader: Reader, shown: int) -> tuple[str, list[Any]]:
        """The WHERE of one value of `shown`, over `sessions s` and the index `i`."""
        folder = "" if self.folder is None else self.folder.rstrip("/")
        asked: list[tuple[bool, str, tuple[Any, ...]]] = [
            (True, "i.shown = ?", (shown,)),
            (shown != index.TRASHED and self.state == ACTIVE, "s.archived = 0", ()),
            (shown != index.TRASHED and self.state == ARCHIVED, "s.archived <> 0", ()),
            (shown == index.TRASHED and not self.children, IS_TIP, ()),
            (self.since is not None, "i.last_activity >= ?", (self.since,)),
            (self.until is not None, "i.last_activity < ?", (self.until,)),
            (bool(self.sources), "s.source IN (SELECT value FROM json_each(?))",
             (json.dumps(self.sources),)),
            (self.model is not None, "instr(lower(s.model), lower(?)) > 0", (self.model,)),
            (self.name is not None, "s.title LIKE ? ESCAPE '\\'", (containing(self.name or ""),)),
            (self.folder is not None, "(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')",
             (folder, beginning_with(f"{folder}/"))),
            (self.min_messages is not None, "s.message_count >= ?", (self.min_messages,)),
            (self.max_messages is not None, "s.message_count <= ?", (self.max_messages,)),
            (self.min_seconds is not None, f"{LASTED} >= ?", (self.min_seconds,)),
            (self.max_seconds is not None, f"{LASTED} < ?", (self.max_seconds,)),
        ]  # fmt: skip
        asked += self._by_set(reader)
        wanted = [(sql, values) for is_asked, sql, values in asked if is_asked]
        return " AND ".join(sql for sql, _ in wanted), [v for _, values in wanted for v in values]

    def _by_set(self, reader: Reader) -> list[tuple[bool, str, tuple[Any, ...]]]:
        pinned = IS_PINNED if reader.columns.session_has("pinned") else IS_PINNED_BESIDE
        folded = sorted({one.casefold() for one in self.tags})
        has_tags = HAS_TAGS if TABLE in reader.columns.tables else "0 AND ? <> ?"
        named = "i.session_id IN (SELECT value FROM json_each(?))" if self.children else IS_OF_THESE
        return [
            (self.is_pinned is True, pinned, ()),
            (self.is_pinned is False, f"NOT ({pinned})", ()),
            (bool(folded), has_tags, (json.dumps(folded), len(folded))),
            (self.ids is not None, named, (json.dumps(sorted(self.ids or ())),)),
        ]

    def takes(self, row: Row, tags: Sequence[str]) -> bool:
        """What the SQL looks at beyond `wish`, for a row that the index does not know."""
        most = self.max_messages
        lasted = row["last_active"] - row["started_at"]
        return (
            (self.name is None or self.name.lower() in (row["title"] or "").lower())
            and (self.is_pinned is None or bool(row.get("pinned")) == self.is_pinned)
            and (most is None or (row["message_count"] or 0) <= most)
            and (self.min_seconds is None or lasted >= self.min_seconds)
            and (self.max_seconds is None or lasted < self.max_seconds)
            and {one.casefold() for one in self.tags} <= {one.casefold() for one in tags}
            and (self.ids is None or row["id"] in self.ids or row["root_id"] in self.ids)
        )


class SessionPage(NamedTuple):
    """A page of a list, and the place behind which the next one begins, if there is one."""

    rows: list[Row]
    next: PagePosition | None


def read_page(
    reader: Reader, choice: SessionPageFilter, limit: int, after: PagePosition | None
) -> list[Row]:
    """Rows of a list, most recent first, as far as the index knows them."""
    found = [_read_shown(reader, choice, one, limit, after) for one in choice.shown]
    merged = heapq.merge(*found, key=_order, reverse=True)
    return list(itertools.islice(merged, limit))


def _order(row: Row) -> tuple[float, str]:
    return row["last_active"], row["id"]


def _read_shown(
    reader: Reader, choice: SessionPageFilter, shown: int, limit: int, after: PagePosition | None
) -> list[Row]:
    where, values = choice.conditions(reader, shown)
    if after is not None:
        where += " AND (i.last_activity, i.session_id) < (?, ?)"
        values += after
    sql = (
        f"{reader.prepared(_select)} WHERE {where}"
        " ORDER BY i.last_activity DESC, i.session_id DESC LIMIT ?"
    )
    return reader.dicts(sql, (*values, limit))


def _select(columns: Columns) -> str:
    names = ", ".join("s." + name for name in listed_columns(columns))
    return (
        f"SELECT {names}, coalesce(i.preview, '') AS preview, i.last_activity AS last_active,"  # noqa: S608
        " i.root_id, i.kind, t.trashed_at, t.title AS trashed_title"
        " FROM hermes_session_index i CROSS JOIN sessions s ON s.id = i.session_id"
        " LEFT JOIN hermes_trash t ON t.session_id = i.session_id"
    )


def read_items(reader: Reader, session_ids: Sequence[str]) -> list[Row]:
    """Single rows, in whatever state; those that the index does not know are computed."""
    found: list[Row] = []
    for one in session_ids:
        rows = []
        if reader.columns.has_own_tables:
            rows = reader.dicts(f"{reader.prepared(_select)} WHERE i.session_id = ?", (one,))
        found += rows or lists.list_computed(reader, ANY, [one])
    return found


def count(reader: Reader, choice: SessionPageFilter) -> int:
    """How many conversations fit."""
    total = 0
    for shown in choice.shown:
        where, values = choice.conditions(reader, shown)
        join = " JOIN sessions s ON s.id = i.session_id" if "s." in where else ""
        sql = f"SELECT count(*) FROM hermes_session_index i{join} WHERE {where}"  # noqa: S608
        total += int(reader.value(sql, values))
    return total


def read_strangers(
    reader: Reader, choice: SessionPageFilter, after: PagePosition | None
) -> list[Row]:
    """Rows that fit and that the index has not reached yet."""
    ids = lists.unindexed(reader, choice.wish._replace(limit=MAX_STRANGERS))
    rows = list(lists.list_computed(reader, choice.wish, ids[:MAX_STRANGERS]))
    rows = begun(reader, with_extras(reader, rows))
    tags = tags_of(reader, [row["root_id"] for row in rows])
    return [
        row
        for row in rows
        if choice.takes(row, tags.get(row["root_id"], ()))
        and (after is None or _order(row) < tuple(after))
    ]


def completed(reader: Reader, rows: list[Row], running: set[str]) -> list[Row]:
    """Rows with what is kept beside them: tags, whether a turn runs, when it began."""
    rows = begun(reader, with_extras(reader, rows))
    tags = tags_of(reader, [row["root_id"] for row in rows])
    for row in rows:
        row["tags"] = tags.get(row["root_id"], [])
        row["is_running"] = row["id"] in running
        row.setdefault("trashed_at", None)
        row["title"] = row["title"] or row.pop("trashed_title", None)
        seen = row.get("last_read_at")
        row["unread"] = seen is not None and row["last_active"] > float(seen)
    return rows


def begun(reader: Reader, rows: list[Row]) -> list[Row]:
    """Rows that tell when their conversation began, not the row that stands for it."""
    for row in rows:
        if row["root_id"] != row["id"]:
            row["started_at"] = reader.value(ROOT_STARTED, (row["root_id"],)) or row["started_at"]
    return rows


class PagePart(ListPart):
    """Lists for those who page through them."""

    def session_page(
        self,
        choice: SessionPageFilter | None = None,
        limit: int = 100,
        after: PagePosition | None = None,
    ) -> SessionPage:
        """Conversations by last activity, most recent first, behind the place *after*.

        Rows are as in `list_sessions_rich`, with `root_id`, `kind`, `tags`, `is_running`
        and `trashed_at`.
        """
        wanted = choice or SessionPageFilter()

        def read(reader: Reader) -> SessionPage:
            has_index = reader.columns.has_own_tables
            rows = read_page(reader, wanted, limit + 1, after) if has_index else []
            if strangers := read_strangers(reader, wanted, after):
                rows = sorted(rows + strangers, key=_order, reverse=True)
            running = leases.running(reader, self.identity, self.clock)
            found = completed(reader, rows[:limit], running)
            is_more = len(rows) > limit and bool(found)
            return SessionPage(found, PagePosition(*_order(found[-1])) if is_more else None)

        self.refresh_index()
        return self.engine.read(read)

    def count_sessions(self, choice: SessionPageFilter | None = None) -> int:
        """How many conversations fit, as far as the index knows them."""
        wanted = choice or SessionPageFilter()
        return self.engine.read(lambda reader: count(reader, wanted))

    def session_items(self, session_ids: Sequence[str]) -> list[Row]:
        """These rows as `session_page` gives them, in whatever state they are."""

        def read(reader: Reader) -> list[Row]:
            running = leases.running(reader, self.identity, self.clock)
            return completed(reader, read_items(reader, session_ids), running)

        self.refresh_index()
        return self.engine.read(read)

    def family_in_trash(self, session_id: str) -> list[str]:
        """The rows of a conversation that lie in the trash, with what was delegated from it."""

        def look(reader: Reader) -> list[str]:
            family = trash.everything_of(reader, session_id)
            return [one for one in family if reader.value(trash.TRASHED_AT, (one,)) is not None]

        return self.engine.read(look)
