"""The space that the tables of Hermes add to a file, per message."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from figures import Figure
from hermes_state import SessionDB
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.transaction import read_only_uri

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import BenchmarkContext

SIZES: Final = """
    SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name
    WHERE d.aggregate = TRUE GROUP BY 1
"""


def bytes_by_table(path: Path) -> dict[str, int]:
    """Bytes of each table, including its indexes."""
    with closing(driver.connect(read_only_uri(path), 10, uri=True)) as connection:
        return dict(connection.execute(SIZES))


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
