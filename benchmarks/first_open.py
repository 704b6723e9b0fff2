"""A process that opens a history for the first time, and prints the time of each step.

    python first_open.py bare PATH     SQLite alone: connect, the 20 newest sessions
    python first_open.py ours PATH     SessionDB() and its first list
    python first_open.py build PATH    the same, then appends until the index is built

Times are in milliseconds since the process started to import Hermes.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state import SessionDB

STARTED = time.perf_counter()
CONTENT = "a line of what a tool said \n" * 146
PAUSE_SECONDS = 0.005
NEWEST = (
    "SELECT id, source, model, title, started_at FROM sessions ORDER BY started_at DESC LIMIT 20"
)


def elapsed_ms() -> float:
    """Milliseconds since the start."""
    return (time.perf_counter() - STARTED) * 1000


def bare(path: str) -> dict[str, Any]:
    """Open and list with SQLite alone."""
    from hermes_state.engine.sqlite.driver import sqlite3  # noqa: PLC0415 - importing is part of the time

    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute(NEWEST).fetchall()
    return {"listed": elapsed_ms(), "rows": len(rows)}


def ours(path: str, *, is_building: bool = False) -> dict[str, Any]:
    """Open and list with the store."""
    from hermes_state import SessionDB  # noqa: PLC0415 - importing is part of the time

    times: dict[str, Any] = {"imported": elapsed_ms()}
    with SessionDB(path) as db:
        times["opened"] = elapsed_ms()
        times["rows"] = len(db.list_sessions_rich(limit=20, order_by_last_active=True))
        times["listed"] = elapsed_ms()
        times["progress"] = db.index_progress()
        if is_building:
            times |= _append_while_building(db)
        else:
            db.close()
            times["closed"] = elapsed_ms()
    return times


def _append_while_building(db: SessionDB) -> dict[str, Any]:
    """Append, list and commit to another file in turns, until the index is complete."""
    session = db.create_session("20261001_000000_bench1", "cli")
    commit = _bare_commits(db.db_path.with_name("beside.db"))
    appends, lists, commits, readings = [], [], [], set()
    while (progress := db.index_progress()) is not None:
        readings.add(progress)
        appends.append(_milliseconds(lambda: db.append_message(session, "tool", CONTENT)))
        commits.append(_milliseconds(commit))
        lists.append(
            _milliseconds(lambda: db.list_sessions_rich(limit=20, order_by_last_active=True))
        )
        time.sleep(PAUSE_SECONDS)
    return {
        "built": elapsed_ms(),
        "progress_readings": len(readings),
        "appends": appends,
        "commits": commits,
        "lists": lists,
    }


def _bare_commits(path: Path) -> Callable[[], object]:
    """A commit of one row to another file, which shows the speed of the disk."""
    from hermes_state.engine.sqlite.driver import sqlite3  # noqa: PLC0415 - importing is part of the time

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (content TEXT)")
    return lambda: connection.execute("INSERT INTO rows VALUES (?)", (CONTENT,))


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Run the mode of the command line."""
    mode, path = sys.argv[1:]
    times = bare(path) if mode == "bare" else ours(path, is_building=mode == "build")
    print(json.dumps(times))


if __name__ == "__main__":
    main()
