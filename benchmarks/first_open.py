"""A process that opens a history for the first time, and says how long what took.

    python first_open.py bare PATH     SQLite alone: connect, the 20 newest sessions
    python first_open.py ours PATH     SessionDB() and its first list
    python first_open.py build PATH    the same, then appends until the index is built

Times are in milliseconds since the process began to import anything of ours.
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

BEGAN = time.perf_counter()
CONTENT = "a line of what a tool said \n" * 146
PAUSE_SECONDS = 0.005
NEWEST = (
    "SELECT id, source, model, title, started_at FROM sessions ORDER BY started_at DESC LIMIT 20"
)


def passed() -> float:
    """Milliseconds since the beginning."""
    return (time.perf_counter() - BEGAN) * 1000


def bare(path: str) -> dict[str, Any]:
    """SQLite alone."""
    from hermes_state.engine.driver import sqlite3  # noqa: PLC0415 - importing is part of the time

    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute(NEWEST).fetchall()
    return {"listed": passed(), "rows": len(rows)}


def ours(path: str, *, is_building: bool = False) -> dict[str, Any]:
    """The store."""
    from hermes_state import SessionDB  # noqa: PLC0415 - importing is part of the time

    found: dict[str, Any] = {"imported": passed()}
    with SessionDB(path) as db:
        found["opened"] = passed()
        found["rows"] = len(db.list_sessions_rich(limit=20, order_by_last_active=True))
        found["listed"] = passed()
        found["progress"] = db.index_progress()
        if is_building:
            found |= _append_while_building(db)
        else:
            db.close()
            found["closed"] = passed()
    return found


def _append_while_building(db: SessionDB) -> dict[str, Any]:
    """Append, list and commit elsewhere in turns, until the index is there."""
    session = db.create_session("20261001_000000_bench1", "cli")
    commit = _bare_commits(db.db_path.with_name("beside.db"))
    appends, lists, commits, seen = [], [], [], set()
    while (progress := db.index_progress()) is not None:
        seen.add(progress)
        appends.append(_milliseconds(lambda: db.append_message(session, "tool", CONTENT)))
        commits.append(_milliseconds(commit))
        lists.append(
            _milliseconds(lambda: db.list_sessions_rich(limit=20, order_by_last_active=True))
        )
        time.sleep(PAUSE_SECONDS)
    return {
        "built": passed(),
        "progress_readings": len(seen),
        "appends": appends,
        "commits": commits,
        "lists": lists,
    }


def _bare_commits(path: Path) -> Callable[[], object]:
    """What the disk itself takes meanwhile: one row and its commit in a file of its own."""
    from hermes_state.engine.driver import sqlite3  # noqa: PLC0415 - importing is part of the time

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (content TEXT)")
    return lambda: connection.execute("INSERT INTO rows VALUES (?)", (CONTENT,))


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Do what is asked."""
    way, path = sys.argv[1:]
    found = bare(path) if way == "bare" else ours(path, is_building=way == "build")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
