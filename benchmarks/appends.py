"""Appending 4 KB rows, compared with INSERT and COMMIT into the same tables."""

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
from hermes_state.engine.sqlite.driver import sqlite3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from surroundings import BenchmarkContext

CONTENT: Final = "a line of what a tool said \n" * 146
BLOCKS: Final = 300
BLOCK_ROWS: Final = 8
THREADS: Final = 8
BUSY_THREADS: Final = (8, 20)  # of the longest append
BUSY_ROWS: Final = 400  # per thread
MAX_ROWS: Final = 20_000
PRAGMAS: Final = (
    "journal_mode", "synchronous", "foreign_keys", "cache_size", "journal_size_limit",
    "wal_autocheckpoint", "mmap_size", "temp_store",
)  # fmt: skip
INSERT_MESSAGE: Final = (
    "INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp, observed)"
    " VALUES (?, 'tool', ?, 'call_1', 'terminal', ?, 0)"
)


@dataclass(frozen=True)
class Writers:
    """The compared functions: each appends one row and returns when it is on disk."""

    store: Work
    sqlite: Work


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    blocks = context.rounds(BLOCKS)
    with context.copy("power") as path, context.copy("power") as other:
        with _writers(path, other) as writers:
            _in_blocks(writers, 2)
            with ThreadPoolExecutor(1) as pool:
                worker = pool.submit(_in_blocks, writers, blocks).result()
            main = _in_blocks(writers, blocks)
            concurrent = _concurrent_appends(writers, blocks * BLOCK_ROWS // THREADS)
            longest = [_longest_append(path, count, context.rounds(BUSY_ROWS))
                       for count in BUSY_THREADS]  # fmt: skip
        return [
            *_figures("append 4 KB, worker thread", worker, limit=1.5),
            *_figures("append 4 KB, main thread", main),
            concurrent,
            *longest,
        ]


@contextmanager
def _writers(path: Path, other: Path) -> Iterator[Writers]:
    with SessionDB(path) as db, closing(_connect(other, _settings(db))) as connection:
        session = db.create_session("20261001_000000_bench1", "cli")
        connection.execute(
            "INSERT OR IGNORE INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)",
            (session, time.time()),
        )

        # Messages get their identities before they are appended.
        identities = deque(db.ids.new() for _ in range(MAX_ROWS))

        def append_to_store() -> None:
            db.append_message(
                session, "tool", CONTENT, tool_call_id="call_1", tool_name="terminal",
                uid=identities.popleft(),
            )  # fmt: skip

        def append_with_sqlite() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(INSERT_MESSAGE, (session, CONTENT, time.time()))
            connection.execute("COMMIT")

        yield Writers(append_to_store, append_with_sqlite)


def _connect(path: Path, settings: dict[str, str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for name, value in settings.items():
        connection.execute(f"PRAGMA {name} = {value}")
    return connection


def _settings(db: SessionDB) -> dict[str, str]:
    """The pragmas of the store's writing connection."""
    return db.engine.write(lambda tx: {name: tx.value(f"PRAGMA {name}") for name in PRAGMAS})


Blocks = tuple[list[list[float]], list[list[float]]]


def _in_blocks(writers: Writers, blocks: int) -> Blocks:
    """Milliseconds of every append, in alternating blocks of the two writers."""
    store_times: list[list[float]] = []
    sqlite_times: list[list[float]] = []
    for number in range(blocks):
        pair = [(store_times, writers.store), (sqlite_times, writers.sqlite)]
        for times, append in pair if number % 2 else reversed(pair):
            times.append([_milliseconds(append) for _ in range(BLOCK_ROWS)])
    return store_times, sqlite_times


def _milliseconds(append: Work) -> float:
    started = time.perf_counter()
    append()
    return (time.perf_counter() - started) * 1000


def _figures(name: str, blocks: Blocks, limit: float | None = None) -> list[Figure]:
    store_times, sqlite_times = blocks
    ratios = [sum(a) / sum(b) for a, b in zip(store_times, sqlite_times, strict=True)]
    flat_store = [time for block in store_times for time in block]
    flat_sqlite = [time for block in sqlite_times for time in block]
    return [
        Figure(f"{name}, p50", median(flat_store), "ms", median(flat_sqlite), limit, "ratio",
               measured_ratio=median(ratios)),
        Figure(f"{name}, p95", percentile(flat_store, 0.95), "ms", percentile(flat_sqlite, 0.95)),
    ]  # fmt: skip


def _concurrent_appends(writers: Writers, rows: int) -> Figure:
    """Time per message when several threads append concurrently and share commits."""

    def run() -> None:
        for _ in range(rows):
            writers.store()

    started = time.perf_counter()
    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store_ms = (time.perf_counter() - started) * 1000 / (rows * THREADS)
    sqlite_ms = median([_milliseconds(writers.sqlite) for _ in range(rows)])
    return Figure(f"append 4 KB, per row of {THREADS} threads", store_ms, "ms", sqlite_ms)


def _longest_append(path: Path, count: int, rows: int) -> Figure:
    """The longest of the appends of busy threads, compared with their 99th percentile."""
    times: list[float] = []

    def run() -> None:
        own = [
            _milliseconds(lambda: store.append_message(session, "tool", "x")) for _ in range(rows)
        ]
        times.extend(own)

    with SessionDB(path) as store:
        session = store.create_session(f"busy {count}", "cli")
        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    high = percentile(times, 0.99)
    return Figure(f"longest append of {count} threads, to p99", max(times), "ms", high, 5, "ratio")
