"""The space that the tables of Hermes add to a file, per message."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from figures import Figure
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import BenchmarkContext

# Sizes come from SQLite's dbstat, which pysqlite3 lacks and apsw has. A separate process reads
# it, because a process must not load two copies of SQLite.
READ_SIZES: Final = """
import apsw, json, sys
rows = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY).execute(
    "SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name"
    " WHERE d.aggregate = TRUE GROUP BY 1")
print(json.dumps(dict(rows)))
"""


def bytes_by_table(path: Path) -> dict[str, int]:
    """Bytes of each table, including its indexes."""
    command = [sys.executable, "-I", "-c", READ_SIZES, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    path = context.history("power")
    sizes = bytes_by_table(path)
    messages = _count(path)
    own_bytes = sum(size for name, size in sizes.items() if name.startswith("hermes_"))
    message_bytes = sizes["messages"]
    other_bytes = sum(sizes.values()) - own_bytes
    share = 100 * own_bytes / message_bytes
    return [
        Figure("our bytes per message", own_bytes / messages, "bytes", message_bytes / messages),
        Figure("our bytes over the bare rows", share, "%", 100.0, 15),
        Figure("our bytes over the rest of the file", 100 * own_bytes / other_bytes, "%", 100.0),
        Figure(
            "of which identities",
            sizes["hermes_message"] / messages,
            "bytes",
            message_bytes / messages,
        ),
        Figure(
            "of which session index",
            sizes["hermes_session_index"] / messages,
            "bytes",
            message_bytes / messages,
        ),
    ]


def _count(path: Path) -> int:
    with SessionDB(path, read_only=True) as db:
        return db.message_count()
