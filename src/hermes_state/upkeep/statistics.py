"""Statistics of the history, and maintenance of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.values import amount_sql, number_sql
from hermes_state.repository import Repository
from hermes_state.sessions import index
from hermes_state.sessions.totals import COSTS, OWN_CALLS, OWN_MESSAGES, without_index
from hermes_state.upkeep.health import miscounted, stale_index_rows

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

BY_SOURCE: Final = f"""
    SELECT CAST(s.source AS TEXT), count(*), sum({OWN_MESSAGES}), sum({OWN_CALLS}),
           count(*) FILTER (WHERE s.ended_at IS NULL),
           min({number_sql("s.started_at")}),
           sum({amount_sql("s.input_tokens")}), sum({amount_sql("s.output_tokens")}),
           sum(coalesce({COSTS}, 0.0)),
           count(*) FILTER (WHERE coalesce({COSTS}) IS NULL AND s.input_tokens > 0)
    FROM sessions s LEFT JOIN hermes_session_index i ON i.session_id = s.id
    GROUP BY s.source ORDER BY 2 DESC
"""  # noqa: S608 - own names
COUNT_BY_SOURCE: Final = "SELECT source, count(*) FROM sessions GROUP BY source ORDER BY 2 DESC"
LIFETIME_TOTALS: Final = """
    SELECT coalesce(sum(lifetime_messages), 0), coalesce(sum(lifetime_tool_calls), 0),
           max(last_activity), count(*) FILTER (WHERE shown = 2)
    FROM hermes_session_index
"""
IDENTITIES: Final = """
    SELECT h.uid, m.id IS NULL FROM hermes_message h LEFT JOIN messages m ON m.id = h.message_id
    WHERE h.uid > ? ORDER BY h.uid LIMIT 5000
"""
DELETE_IDENTITY: Final = """
    DELETE FROM hermes_message
    WHERE uid = ? AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = message_id)
"""


class SourceCounts(NamedTuple):
    """Sessions and messages of one source."""

    sessions: int
    messages: int


class StoreStatistics(NamedTuple):
    """Totals of the history, for all sources; `by_source` has the largest first."""

    sessions: int
    messages: int
    tool_calls: int
    open_sessions: int
    first_started_at: float | None
    by_source: dict[str, SourceCounts]
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float
    unpriced_sessions: int  # with tokens, and without a known price
    last_active: float | None
    trashed: int
    lifetime_messages: int
    lifetime_tool_calls: int
    database_bytes: int
    wal_bytes: int

    def as_dict(self) -> dict[str, object]:
        """The totals for JSON output."""
        by_source = {name: counts._asdict() for name, counts in self.by_source.items()}
        return {**self._asdict(), "by_source": by_source}


def statistics(reader: Reader, size_bytes: tuple[int, int]) -> StoreStatistics:
    """The figures of `hermes sessions stats`."""
    sources = reader.rows(without_index(BY_SOURCE, reader.columns))
    lifetime = reader.row(LIFETIME_TOTALS) if reader.columns.has_own_tables else None
    messages, calls, last, trashed = lifetime or (0, 0, None, 0)
    return StoreStatistics(
        sessions=sum(row[1] for row in sources),
        messages=sum(row[2] for row in sources),
        tool_calls=sum(row[3] for row in sources),
        open_sessions=sum(row[4] for row in sources),
        first_started_at=min((row[5] for row in sources if row[5] is not None), default=None),
        by_source={row[0]: SourceCounts(row[1], row[2]) for row in sources},
        input_tokens=sum(row[6] for row in sources),
        output_tokens=sum(row[7] for row in sources),
        estimated_cost_usd=sum((row[8] for row in sources), 0.0),
        unpriced_sessions=sum(row[9] for row in sources),
        last_active=last,
        trashed=trashed,
        lifetime_messages=messages,
        lifetime_tool_calls=calls,
        database_bytes=size_bytes[0],
        wal_bytes=size_bytes[1],
    )


def _recount(tx: Tx, session_id: str) -> None:
    """Count a session again; earlier releases counted the tool calls of copies."""
    index.recount(tx, session_id, index.lifetime(tx, session_id)._replace(tool_calls=0))


class StatisticsRepository(Repository):
    """Statistics and maintenance."""

    def stats(self) -> StoreStatistics:
        """Totals of the history, for all sources."""
        size_bytes = self.engine.database.size_bytes()
        return self.engine.read(lambda reader: statistics(reader, size_bytes))

    def session_count_by_source(self) -> dict[str, int]:
        """Number of sessions by source."""
        rows = self.engine.read(lambda reader: reader.rows(COUNT_BY_SOURCE))
        return {row[0]: row[1] for row in rows}

    def clean_up(self) -> int:
        """Delete identities of messages that were permanently deleted, in slices.

        Returns their number.
        """
        total, last = 0, b""
        while True:
            rows = self.engine.read(lambda reader, last=last: reader.rows(IDENTITIES, (last,)))  # type: ignore[misc]
            stale = [(uid,) for uid, is_dangling in rows if is_dangling]
            if stale:
                self.engine.write_upkeep(lambda tx, stale=stale: tx.many(DELETE_IDENTITY, stale))  # type: ignore[misc]
            total += len(stale)
            if not rows:
                return total
            last = rows[-1][0]

    def repair_index(self) -> int:
        """Recompute every index row that disagrees with its messages; returns their number."""
        stale = self.engine.read(stale_index_rows)
        for session_id in stale:
            self.engine.write_upkeep(
                lambda tx, session_id=session_id: index.reindex(tx, session_id)  # type: ignore[misc]
            )
        wrong = self.engine.read(miscounted)
        for session_id in wrong:
            self.engine.write_upkeep(lambda tx, row=session_id: _recount(tx, row))  # type: ignore[misc]
        return len({*stale, *wrong})

    def vacuum(self) -> None:
        """Return free space to the disk; other writers wait meanwhile, so ask the user first."""
        self.engine.write_alone(lambda tx: tx.compact())

    def optimize_fts(self) -> int:
        """Merge the search index into its smallest form; returns the number of indexes."""
        from hermes_state.search import index_cleanup  # noqa: PLC0415 - loaded at first use

        if self.engine.database.is_file:
            self.engine.search.use(index_cleanup.optimize)
        return 2
