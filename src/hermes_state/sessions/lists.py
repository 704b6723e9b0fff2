"""Lists of sessions: answered from the index, whatever the size of the history."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.engine.dialect import beginning_with, containing
from hermes_state.part import StorePart
from hermes_state.sessions import index, lineage
from hermes_state.sessions.rows import listed_columns, with_extras

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes_state.engine.transaction import Reader, Tx

MAX_UNINDEXED_ROWS: Final = 64
MARGIN: Final = 50
SPOKEN_ROWS: Final = 2000

STARTED = "SELECT id FROM sessions ORDER BY started_at DESC"
SPOKEN = """
    SELECT session_id FROM (SELECT session_id, id FROM messages ORDER BY id DESC LIMIT ?)
    GROUP BY session_id ORDER BY max(id) DESC
"""

# The same facts for a session that is not in the index yet.
COMPUTED_LAST_ACTIVITY = """
    coalesce((SELECT max(timestamp) FROM messages m WHERE m.session_id = s.id),
             s.ended_at, s.started_at)
"""


class SessionFilter(NamedTuple):
    """What a list shall contain."""

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

    def conditions(self) -> tuple[str, list[Any]]:
        """The WHERE of the list, over `sessions s` and the index `i`, and its values."""
        folder = None if self.cwd_prefix is None else self.cwd_prefix.rstrip("/")
        asked: list[tuple[bool, str, tuple[Any, ...]]] = [
            (True, self._shown(), ()),
            (True, self._archived(), ()),
            (bool(self.sources), f"s.source IN ({_marks(self.sources)})", self.sources),
            (
                bool(self.exclude_sources),
                f"s.source NOT IN ({_marks(self.exclude_sources)})",
                self.exclude_sources,
            ),
            (self.min_message_count > 0, "s.message_count >= ?", (self.min_message_count,)),
            (
                folder is not None,
                "(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')",
                (folder, beginning_with(f"{folder}/")),
            ),
            (
                self.id_query is not None,
                "s.id LIKE ? ESCAPE '\\'",
                (containing(self.id_query or ""),),
            ),
            (self.session_key is not None, "s.session_key = ?", (self.session_key,)),
            (self.model is not None, "instr(lower(s.model), lower(?)) > 0", (self.model,)),
            (self.active_since is not None, "i.last_activity >= ?", (self.active_since,)),
            (self.active_until is not None, "i.last_activity < ?", (self.active_until,)),
        ]
        wanted = [(sql, values) for is_asked, sql, values in asked if is_asked]
        return " AND ".join(sql for sql, _ in wanted), [v for _, values in wanted for v in values]

    def _archived(self) -> str:
        if self.archived_only:
            return "s.archived <> 0"
        return "1" if self.include_archived or self.trashed_only else "s.archived = 0"

    def _shown(self) -> str:
        if self.trashed_only:
            return "i.shown = 2"
        if self.include_children:
            return "i.shown < 2"
        if not self.project_tips:
            return "i.shown < 2 AND i.kind IN ('root', 'branch', 'reset')"
        return "i.shown = 1"


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def list_indexed(reader: Reader, wish: SessionFilter) -> list[dict[str, Any]]:
    """The list from the index alone."""
    where, values = wish.conditions()
    names = ", ".join("s." + name for name in reader.prepared(listed_columns))
    order = "i.last_activity DESC" if wish.by_last_active else "s.started_at DESC"
    sql = (
        f"SELECT {names}, coalesce(i.preview, '') AS preview, i.last_activity AS last_active,"  # noqa: S608
        " i.root_id, i.kind, 0 AS unread"
        " FROM hermes_session_index i CROSS JOIN sessions s ON s.id = i.session_id"
        f" WHERE {where} ORDER BY {order}, s.id DESC LIMIT ? OFFSET ?"
    )
    if not wish.by_last_active:
        sql = sql.replace(
            "hermes_session_index i CROSS JOIN sessions s",
            "sessions s CROSS JOIN hermes_session_index i",
        )
    return reader.dicts(sql, (*values, wish.limit, wish.offset))


def list_computed(
    reader: Reader, wish: SessionFilter, ids: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """The same rows for sessions that the index does not know, one by one."""
    names = ", ".join("s." + name for name in reader.prepared(listed_columns))
    sql = (
        f"SELECT {names}, {COMPUTED_LAST_ACTIVITY} AS last_active"  # noqa: S608 - file's names
        " FROM sessions s WHERE s.id = ?"
    )
    for session_id in ids:
        place = lineage.place_of(reader, session_id)
        for row in reader.dicts(sql, (session_id,)):
            row["preview"] = index.first_words(reader, session_id) or ""
            row["unread"] = 0
            row["root_id"], row["kind"] = place.root_id, place.kind
            if fits(row, wish, place):
                yield row


def fits(row: dict[str, Any], wish: SessionFilter, place: lineage.LineagePosition) -> bool:
    """As `Wish.conditions`, for a row that is at hand."""
    is_listed = place.is_listed if wish.project_tips else place.kind in lineage.LISTABLE
    return (
        not wish.trashed_only
        and (is_listed or wish.include_children)
        and (not wish.sources or row["source"] in wish.sources)
        and row["source"] not in wish.exclude_sources
        and (row["message_count"] or 0) >= wish.min_message_count
        and _fits_archive(bool(row["archived"]), wish)
        and (wish.cwd_prefix is None or _is_inside(row["cwd"] or "", wish.cwd_prefix))
        and (wish.id_query is None or wish.id_query in row["id"])
        and (wish.session_key is None or row.get("session_key") == wish.session_key)
        and (wish.model is None or wish.model.lower() in (row["model"] or "").lower())
        and (wish.active_since or 0) <= row["last_active"] < (wish.active_until or math.inf)
    )


def _fits_archive(is_archived: bool, wish: SessionFilter) -> bool:
    if wish.archived_only:
        return is_archived
    return wish.include_archived or not is_archived


def _is_inside(folder: str, prefix: str) -> bool:
    return folder == prefix.rstrip("/") or folder.startswith(prefix.rstrip("/") + "/")


def unindexed(reader: Reader, wish: SessionFilter) -> list[str]:
    """Sessions without an index row, the likely most recent first."""
    if reader.columns.has_own_tables:
        total, indexed = index.counts(reader)
        most = -1 if wish.limit < 0 else max(1000, 4 * (wish.limit + wish.offset))
        return [] if total == indexed else index.missing_sessions(reader, most)
    started = [row[0] for row in reader.rows(STARTED)]
    if not wish.by_last_active:
        return started
    spoken = [row[0] for row in reader.rows(SPOKEN, (SPOKEN_ROWS,))]
    return list(dict.fromkeys(spoken + started))


def answer(reader: Reader, wish: SessionFilter) -> list[dict[str, Any]]:
    """The list, with sessions the index has not reached mixed in where they belong."""
    strangers = unindexed(reader, wish)
    if not strangers:
        rows = list_indexed(reader, wish)
    else:
        most = None if wish.limit < 0 else wish.limit + wish.offset
        whole = wish._replace(limit=-1 if most is None else most, offset=0)
        rows = list_indexed(reader, whole) if reader.columns.has_own_tables else []
        # More are looked at than shown: activity may order them differently than start.
        enough = None if most is None else most + MARGIN
        rows += itertools.islice(list_computed(reader, wish, strangers), enough)
        key = "last_active" if wish.by_last_active else "started_at"
        rows.sort(key=lambda row: (row[key], row["id"]), reverse=True)
        rows = rows[wish.offset : most]
    rows = with_extras(reader, rows)
    return [_as_listed(reader, row, wish) for row in rows]


def _as_listed(reader: Reader, row: dict[str, Any], wish: SessionFilter) -> dict[str, Any]:
    root = row.pop("root_id")
    if root != row["id"]:
        row["_lineage_root_id"] = root
        if wish.project_tips and not wish.include_children:
            sql = "SELECT started_at FROM sessions WHERE id = ?"
            row["started_at"] = reader.value(sql, (root,)) or row["started_at"]
    if (seen := row.get("last_read_at")) is not None:
        row["unread"] = row["last_active"] > float(seen)
    return row


class ListPart(StorePart):
    """Listing and counting sessions."""

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Sequence[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        project_compression_tips: bool = True,
        *,
        min_message_count: int = 0,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        archived_only: bool = False,
        id_query: str | None = None,
        sources: Sequence[str] | None = None,
        cwd_prefix: str | None = None,
        session_key: str | None = None,
        model: str | None = None,
        active_since: float | None = None,
        active_until: float | None = None,
        trashed_only: bool = False,
    ) -> list[dict[str, Any]]:
        """Sessions with `preview` and `last_active`; `limit=-1` means all of them.

        Rows carry every column but the system prompt, which `get_session` gives. A
        conversation that was continued in further rows appears once, as its last one.
        `active_since` and `active_until` bound the last activity; `model` is a part of
        the model's name.
        """
        wish = SessionFilter(
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
        self.refresh_index()
        return self.engine.read(lambda reader: answer(reader, wish))

    def search_sessions(
        self, source: str | None = None, limit: int = 20, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Sessions by last activity, most recent first."""
        return self.list_sessions_rich(
            source, limit=limit, offset=offset, order_by_last_active=True, include_children=True
        )

    def search_sessions_by_id(
        self, query: str, limit: int = 20, include_archived: bool = False
    ) -> list[dict[str, Any]]:
        """Sessions whose id contains *query*: equal ones first, then prefixes."""
        rows = self.list_sessions_rich(
            limit=-1, id_query=query, include_archived=include_archived, include_children=True
        )
        rows.sort(key=lambda row: (row["id"] != query, not row["id"].startswith(query)))
        return rows[:limit]

    def session_count(
        self,
        source: str | None = None,
        *,
        exclude_children: bool = False,
        include_archived: bool = True,
    ) -> int:
        """How many sessions there are."""
        words = ["i.shown = 1" if exclude_children else "i.shown < 2"]
        values: list[Any] = []
        if source:
            words.append("s.source = ?")
            values.append(source)
        if not include_archived:
            words.append("s.archived = 0")
        self.refresh_index()
        join = " JOIN sessions s ON s.id = i.session_id" if len(words) > 1 else ""
        sql = f"SELECT count(*) FROM hermes_session_index i{join} WHERE {' AND '.join(words)}"  # noqa: S608
        return int(self.engine.read(lambda reader: reader.value(sql, values)))

    def refresh_index(self) -> None:
        """Take in what other programs wrote, if it is little; the builder does the rest."""
        if self.engine.read_only:
            return

        def is_stale(reader: Reader) -> bool:
            total, indexed = index.counts(reader)
            mark = reader.value(index.READ_MARK) or 0
            newest = reader.value("SELECT max(id) FROM messages") or 0
            if total != indexed:
                return True
            return newest > mark and bool(index.stale_in_tail(reader, mark, newest))

        if self.engine.read(is_stale):
            self.engine.write(_take_in)


def _take_in(tx: Tx) -> None:
    index.catch_up(tx)
    for session_id in index.missing_sessions(tx, MAX_UNINDEXED_ROWS):
        index.reindex(tx, session_id)
    total, indexed = index.counts(tx)
    if indexed > total:
        tx.execute(index.VANISHED)
