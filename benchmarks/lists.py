"""Lists, counts and reads of a large history, compared with a minimal query for each."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from figures import Figure, Work, interleave, median, percentile
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.sessions.sort_values import LAST_ACTIVE, SORT_COLUMNS, PageOrder

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import BenchmarkContext

LONGEST = "SELECT id FROM sessions WHERE message_count <= 900 ORDER BY message_count DESC LIMIT 1"
PAGE_ROWS = 50  # as the dashboard's page asks for
SORTED_PAGE_CPU_MS = 2
UNIQUE_PREFIX = "SELECT substr(id, 1, 18) FROM sessions WHERE id LIKE '2026%' LIMIT 1"


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    path = context.history("power")
    with SessionDB(path) as db, closing(_connect(path)) as bare:
        return [*_measure(context, db, PlainSqlite(bare)), *_sorted_pages(context, db)]


def _sorted_pages(context: BenchmarkContext, db: SessionDB) -> list[Figure]:
    """CPU time of the second page of every order."""
    return [
        Figure(
            f"page by {key}, CPU",
            _page_cpu_ms(db, PageOrder(key), context.rounds(100)),
            "ms",
            limit=SORTED_PAGE_CPU_MS,
        )
        for key in (LAST_ACTIVE, *SORT_COLUMNS)
    ]


def _page_cpu_ms(db: SessionDB, order: PageOrder, rounds: int) -> float:
    after = db.pages.page(None, PAGE_ROWS, None, order).next
    times = []
    for _ in range(rounds):
        started = time.process_time()
        db.pages.page(None, PAGE_ROWS, after, order)
        times.append((time.process_time() - started) * 1000)
    return median(times)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


class PlainSqlite:
    """The same queries with SQLite alone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.execute = connection.execute
        names = [row[1] for row in self.execute("PRAGMA table_info(sessions)")]
        self.columns = ", ".join(name for name in names if name != "system_prompt")

    def query_work(self, sql: str, *values: Any) -> Work:
        """A function that executes a query and fetches its rows."""
        return lambda: self.execute(sql.format(columns=self.columns), values).fetchall()


def _measure(context: BenchmarkContext, db: SessionDB, bare: PlainSqlite) -> list[Figure]:
    long_id = bare.execute(LONGEST).fetchone()[0]
    prefix = bare.execute(UNIQUE_PREFIX).fetchone()[0]
    newest = "SELECT {columns} FROM sessions ORDER BY started_at DESC LIMIT 20"
    many_rounds, few_rounds = context.rounds(400), context.rounds(40)
    return [
        *_figures(
            "list 20 most recent", many_rounds,
            lambda: db.list_sessions_rich(limit=20, order_by_last_active=True),
            bare.query_work(newest), limit_p95=10,
        ),
        *_figures(
            "list 20 by start", many_rounds,
            lambda: db.list_sessions_rich(limit=20), bare.query_work(newest),
        ),
        *_figures(
            "list all sessions", few_rounds,
            lambda: db.list_sessions_rich(limit=-1, order_by_last_active=True),
            bare.query_work("SELECT {columns} FROM sessions ORDER BY started_at DESC"), limit=300,
        ),
        *_figures(
            "list all with children", few_rounds,
            lambda: db.list_sessions_rich(limit=-1, include_children=True),
            bare.query_work("SELECT {columns} FROM sessions ORDER BY started_at DESC"), limit=300,
        ),
        *_figures(
            "count sessions", few_rounds,
            db.session_count, bare.query_work("SELECT count(*) FROM sessions"),
        ),
        *_figures(
            "statistics", few_rounds, db.statistics.stats,
            bare.query_work("SELECT source, count(*), sum(message_count) FROM sessions GROUP BY 1"),
        ),
        *_figures(
            "messages of a 900-row session", few_rounds,
            lambda: db.get_messages(long_id, include_inactive=True),
            bare.query_work("SELECT * FROM messages WHERE session_id = ? ORDER BY id", long_id),
        ),
        *_figures(
            "resolve a prefix", many_rounds,
            lambda: db.resolve_session_id(prefix),
            bare.query_work(
                "SELECT id FROM sessions WHERE id >= ? AND id < ? LIMIT 2", prefix, prefix + "~"
            ),
        ),
    ]  # fmt: skip


def _figures(
    name: str,
    rounds: int,
    ours: Work,
    bare: Work,
    limit: float | None = None,
    limit_p95: float | None = None,
) -> list[Figure]:
    ours()
    bare()
    store_times, sqlite_times = interleave(rounds, ours, bare)
    return [
        Figure(f"{name}, p50", median(store_times), "ms", median(sqlite_times), limit),
        Figure(
            f"{name}, p95",
            percentile(store_times, 0.95),
            "ms",
            percentile(sqlite_times, 0.95),
            limit_p95,
        ),
    ]
