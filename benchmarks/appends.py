"""Appending 4 KB rows, against a bare INSERT and COMMIT into the same tables."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from figures import Figure, Work, median, percentile
from hermes_state import SessionDB
from hermes_state.engine.driver import sqlite3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from surroundings import Surroundings

CONTENT: Final = "a line of what a tool said \n" * 146
BLOCKS: Final = 300
BLOCK_ROWS: Final = 8
THREADS: Final = 8
MOST_ROWS: Final = 20_000
SETTINGS: Final = (
    "journal_mode", "synchronous", "foreign_keys", "cache_size", "journal_size_limit",
    "wal_autocheckpoint", "mmap_size", "temp_store",
)  # fmt: skip
PUT: Final = (
    "INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp, observed)"
    " VALUES (?, 'tool', ?, 'call_1', 'terminal', ?, 0)"
)


@dataclass(frozen=True)
class Writers:
    """The two that compete: each appends one row and returns when it is on disk."""

    ours: Work
    bare: Work


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark."""
    blocks = around.rounds(BLOCKS)
    with around.copy("power") as path, around.copy("power") as other:
        with _writers(path, other) as writers:
            _in_blocks(writers, 2)
            with ThreadPoolExecutor(1) as pool:
                worker = pool.submit(_in_blocks, writers, blocks).result()
            main = _in_blocks(writers, blocks)
            together = _together(writers, blocks * BLOCK_ROWS // THREADS)
        return [
            *_figures("append 4 KB, worker thread", worker, limit=1.5),
            *_figures("append 4 KB, main thread", main),
            together,
        ]


@contextmanager
def _writers(path: Path, other: Path) -> Iterator[Writers]:
    with SessionDB(path) as db, closing(_connect(other, _settings(db))) as connection:
        session = db.create_session("20261001_000000_bench1", "cli")
        connection.execute(
            "INSERT OR IGNORE INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)",
            (session, time.time()),
        )

        # A message has its identity from the moment it exists, before it is appended.
        identities = deque(db.ids.new() for _ in range(MOST_ROWS))

        def ours() -> None:
            db.append_message(
                session, "tool", CONTENT, tool_call_id="call_1", tool_name="terminal",
                uid=identities.popleft(),
            )  # fmt: skip

        def bare() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(PUT, (session, CONTENT, time.time()))
            connection.execute("COMMIT")

        yield Writers(ours, bare)


def _connect(path: Path, settings: dict[str, str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for name, value in settings.items():
        connection.execute(f"PRAGMA {name} = {value}")
    return connection


def _settings(db: SessionDB) -> dict[str, str]:
    """How our own writing connection is set."""
    return db.engine.write(lambda tx: {name: tx.value(f"PRAGMA {name}") for name in SETTINGS})


Blocks = tuple[list[list[float]], list[list[float]]]


def _in_blocks(writers: Writers, blocks: int) -> Blocks:
    """Milliseconds of every append, in blocks of one writer and then the other."""
    own: list[list[float]] = []
    theirs: list[list[float]] = []
    for number in range(blocks):
        pair = [(own, writers.ours), (theirs, writers.bare)]
        for times, append in pair if number % 2 else reversed(pair):
            times.append([_milliseconds(append) for _ in range(BLOCK_ROWS)])
    return own, theirs


def _milliseconds(append: Work) -> float:
    began = time.perf_counter()
    append()
    return (time.perf_counter() - began) * 1000


def _figures(name: str, blocks: Blocks, limit: float | None = None) -> list[Figure]:
    own, theirs = blocks
    ratios = [sum(a) / sum(b) for a, b in zip(own, theirs, strict=True)]
    flat_own = [one for block in own for one in block]
    flat_theirs = [one for block in theirs for one in block]
    return [
        Figure(f"{name}, p50", median(flat_own), "ms", median(flat_theirs), limit, "ratio",
               measured_ratio=median(ratios)),
        Figure(f"{name}, p95", percentile(flat_own, 0.95), "ms", percentile(flat_theirs, 0.95)),
    ]  # fmt: skip


def _together(writers: Writers, rows: int) -> Figure:
    """Time per message when several threads append at once: they share commits."""

    def run() -> None:
        for _ in range(rows):
            writers.ours()

    began = time.perf_counter()
    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = (time.perf_counter() - began) * 1000 / (rows * THREADS)
    theirs = median([_milliseconds(writers.bare) for _ in range(rows)])
    return Figure(f"append 4 KB, per row of {THREADS} threads", own, "ms", theirs)
