"""What our own tables add to a file, per message."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from figures import Figure
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import Surroundings

# Page counts come from SQLite's dbstat, which our copy lacks and apsw's has: a process of
# its own asks, since no process may hold two copies.
ASK: Final = """
import apsw, json, sys
rows = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY).execute(
    "SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name"
    " WHERE d.aggregate = TRUE GROUP BY 1")
print(json.dumps(dict(rows)))
"""


def bytes_by_table(path: Path) -> dict[str, int]:
    """How many bytes each table takes, its indexes included."""
    command = [sys.executable, "-I", "-c", ASK, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark."""
    path = around.history("power")
    sizes = bytes_by_table(path)
    messages = _count(path)
    own = sum(size for name, size in sizes.items() if name.startswith("hermes_"))
    bare = sizes["messages"]
    everything = sum(sizes.values()) - own
    share = 100 * own / bare
    return [
        Figure("our bytes per message", own / messages, "bytes", bare / messages),
        Figure("our bytes over the bare rows", share, "%", 100.0, 15),
        Figure("our bytes over the rest of the file", 100 * own / everything, "%", 100.0),
        Figure("of which identities", sizes["hermes_message"] / messages, "bytes", bare / messages),
        Figure(
            "of which session index",
            sizes["hermes_session_index"] / messages,
            "bytes",
            bare / messages,
        ),
    ]


def _count(path: Path) -> int:
    with SessionDB(path, read_only=True) as db:
        return db.message_count()
