"""Lists, counts and reads on a power user's history, against the barest query for each."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from figures import Figure, Work, in_turns, median, percentile
from hermes_state import SessionDB
from hermes_state.engine.driver import sqlite3

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import Surroundings

LONGEST = "SELECT id FROM sessions WHERE message_count <= 900 ORDER BY message_count DESC LIMIT 1"
UNIQUE_PREFIX = "SELECT substr(id, 1, 18) FROM sessions WHERE id LIKE '2026%' LIMIT 1"


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark."""
    path = around.history("power")
    with SessionDB(path) as db, closing(_connect(path)) as bare:
        return _measure(around, db, Bare(bare))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


class Bare:
    """The same questions asked of SQLite without anything between."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.execute = connection.execute
        names = [row[1] for row in self.execute("PRAGMA table_info(sessions)")]
        self.columns = ", ".join(name for name in names if name != "system_prompt")

    def asking(self, sql: str, *values: Any) -> Work:
        """The work of asking and fetching."""
        return lambda: self.execute(sql.format(columns=self.columns), values).fetchall()


def _measure(around: Surroundings, db: SessionDB, bare: Bare) -> list[Figure]:
    long_id = bare.execute(LONGEST).fetchone()[0]
    prefix = bare.execute(UNIQUE_PREFIX).fetchone()[0]
    newest = "SELECT {columns} FROM sessions ORDER BY started_at DESC LIMIT 20"
    often, seldom = around.rounds(400), around.rounds(40)
    return [
        *_figures(
            "list 20 most recent", often,
            lambda: db.list_sessions_rich(limit=20, order_by_last_active=True),
            bare.asking(newest), limit_p95=10,
        ),
        *_figures(
            "list 20 by start", often,
            lambda: db.list_sessions_rich(limit=20), bare.asking(newest),
        ),
        *_figures(
            "list all sessions", seldom,
            lambda: db.list_sessions_rich(limit=-1, order_by_last_active=True),
            bare.asking("SELECT {columns} FROM sessions ORDER BY started_at DESC"), limit=300,
        ),
        *_figures(
            "list all with children", seldom,
            lambda: db.list_sessions_rich(limit=-1, include_children=True),
            bare.asking("SELECT {columns} FROM sessions ORDER BY started_at DESC"), limit=300,
        ),
        *_figures(
            "count sessions", seldom,
            db.session_count, bare.asking("SELECT count(*) FROM sessions"),
        ),
        *_figures(
            "statistics", seldom, db.stats,
            bare.asking("SELECT source, count(*), sum(message_count) FROM sessions GROUP BY 1"),
        ),
        *_figures(
            "messages of a 900-row session", seldom,
            lambda: db.get_messages(long_id, include_inactive=True),
            bare.asking("SELECT * FROM messages WHERE session_id = ? ORDER BY id", long_id),
        ),
        *_figures(
            "resolve a prefix", often,
            lambda: db.resolve_session_id(prefix),
            bare.asking(
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
    own, theirs = in_turns(rounds, ours, bare)
    return [
        Figure(f"{name}, p50", median(own), "ms", median(theirs), limit),
        Figure(f"{name}, p95", percentile(own, 0.95), "ms", percentile(theirs, 0.95), limit_p95),
    ]
