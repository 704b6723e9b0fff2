"""Search in a large history: latency, size of the index, time until a message is found."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from figures import Figure, Work, interleave, median, percentile
from hermes_state import SessionDB
from hermes_state.engine.driver import sqlite3

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

TEXT_BYTES: Final = """
    SELECT sum(octet_length(content)) FROM messages WHERE role IN ('user', 'assistant')
"""
SCAN: Final = """
    SELECT id FROM messages WHERE role IN ('user', 'assistant') AND content LIKE ?
    ORDER BY id DESC LIMIT 20
"""
MOST_COMMON_TERMS: Final = "SELECT term FROM temp.vocabulary ORDER BY doc DESC LIMIT 400"


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    path = context.history("power")
    with SessionDB(path) as db, closing(_connect(path)) as bare:
        filling = _fill(db, bare)
        common, item, two = _words(db)
        rounds = context.rounds(40)
        return [
            *filling,
            *_search_figures(db, bare, f"newest 20 of '{common}'", rounds, 30, query=common),
            *_search_figures(
                db, bare, f"best 20 of '{common}'", rounds, 100, query=common, sort="rank"
            ),
            *_search_figures(db, bare, f"one character ({item})", rounds, 100, query=item),
            *_search_figures(db, bare, f"two characters ({two})", rounds, 100, query=two),
            *_search_figures(
                db, bare, "a piece of a word", rounds, None, query=common[1:], inside_words=True
            ),
            *_search_figures(
                db, bare, "within a source", rounds, None, query=common, source_filter=["matrix"]
            ),
            *_search_figures(db, bare, "nothing to find", rounds, None, query="zzzzqqqq"),
            _until_found(db, rounds),
        ]


def _connect(path: Any) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


def _fill(db: SessionDB, bare: sqlite3.Connection) -> list[Figure]:
    db.search.rebuild()
    started = time.perf_counter()
    while not db.search.fill(5):
        pass
    seconds = time.perf_counter() - started
    db.engine.search.use(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    text = bare.execute(TEXT_BYTES).fetchone()[0]
    messages = bare.execute("SELECT count(*) FROM messages").fetchone()[0]
    size = db.engine.search.size()
    return [
        Figure("indexing all words", seconds, "s"),
        Figure("indexed per second", messages / seconds, "rows"),
        Figure("search file", size / 1e6, "MB", baseline=text / 1e6, limit=0.5, limits="ratio"),
    ]


def _words(db: SessionDB) -> tuple[str, str, str]:
    """A common word, a common character, and two adjacent characters."""

    def most_common(connection: sqlite3.Connection) -> list[str]:
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, body, row)"
        )
        return [row[0] for row in connection.execute(MOST_COMMON_TERMS)]

    words = db.engine.search.use(most_common) or []
    common = next(word for word in words if word.isascii() and len(word) > 4 and word[0] != "x")
    item = next(word for word in words if "\u4e00" <= word <= "\u9fff")
    hit = db.search_messages(item, limit=1)[0]
    start, stop = hit["offsets"][0]
    return common, item, hit["snippet_text"][start : stop + 1]


def _search_figures(
    db: SessionDB, bare: sqlite3.Connection, name: str, rounds: int, limit_p95: float | None,
    **options: Any,
) -> list[Figure]:  # fmt: skip
    times, reading = interleave(
        rounds, lambda: db.search_messages(**options), _scan_work(bare, options["query"])
    )
    baseline = median(reading)
    return [
        Figure(f"{name}, p50", median(times), "ms", baseline),
        Figure(f"{name}, p95", percentile(times, 0.95), "ms", baseline, limit=limit_p95),
    ]


def _scan_work(bare: sqlite3.Connection, word: str) -> Work:
    """A scan with plain SQLite, without an index."""
    return lambda: bare.execute(SCAN, (f"%{word}%",)).fetchall()


def _until_found(db: SessionDB, rounds: int) -> Figure:
    """Time from appending a word to finding it."""
    session_id = db.list_sessions_rich(limit=1)[0]["id"]
    times = []
    for number in range(rounds):
        word = f"novelty{number}x{time.time_ns()}"
        row_id = db.append_message(session_id, "user", word)
        started = time.perf_counter()
        while not db.search_messages(word):
            pass
        times.append(1000 * (time.perf_counter() - started))
        assert row_id
    return Figure("from append to found, p95", percentile(times, 0.95), "ms", limit=1000)
