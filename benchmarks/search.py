"""Search in a large history: latency, size of the index, time until a message is found."""

from __future__ import annotations

import functools
import random
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from figures import Figure, Work, interleave, median, percentile
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.search.tokens import token_texts
from hermes_state.search.tool_index import part_name, part_numbers

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

TEXT_BYTES: Final = """
    SELECT sum(octet_length(content)) FROM messages WHERE role IN ('user', 'assistant')
"""
SCAN: Final = """
    SELECT id FROM messages WHERE role IN ('user', 'assistant') AND content LIKE ?
    ORDER BY id DESC LIMIT 20
"""
TOOL_TEXT: Final = """
    SELECT count(*), sum(coalesce(octet_length(content), 0) + coalesce(octet_length(tool_calls), 0))
    FROM messages WHERE role NOT IN ('user', 'assistant') OR tool_calls IS NOT NULL
"""
BEFORE: Final = """
    SELECT content FROM messages WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT 1
"""
AFTER: Final = """
    SELECT content FROM messages WHERE session_id = ? AND id > ? ORDER BY id LIMIT 1
"""
RARE_TERM: Final = """
    SELECT term FROM temp.part_vocabulary WHERE doc <= 2 AND length(term) > 4 LIMIT 1
"""
OLDEST_QUESTION: Final = """
    SELECT content FROM messages WHERE role = 'user' AND length(content) > 200 ORDER BY id LIMIT 1
"""
INDEXED: Final = "SELECT count(*) FROM message"
TERMS: Final = """
    SELECT term FROM frequency WHERE col = 'words' AND doc > 20 AND length(term) > 3
    ORDER BY doc DESC LIMIT 3000
"""
PURGED_SESSIONS: Final = 2_000
FIRST_MESSAGES: Final = 300_000
FIRST_SESSION_MESSAGES: Final = 30
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
            *_question_figures(db, rounds),
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
            *_phrase_figures(db, bare, rounds),
            *_fill_tools(db, bare),
            *_tool_figures(db, rounds),
            *_purge_figures(context),
            *_first_search_figures(context),
        ]


def _connect(path: Any) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


def _fill(db: SessionDB, bare: sqlite3.Connection) -> list[Figure]:
    db.search.rebuild()
    started, began = time.perf_counter(), time.process_time()
    while not db.search.fill(5):
        pass
    seconds, cpu = time.perf_counter() - started, time.process_time() - began
    db.engine.search.use(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    text = bare.execute(TEXT_BYTES).fetchone()[0]
    messages = bare.execute("SELECT count(*) FROM messages").fetchone()[0]
    size = db.engine.search.size()
    indexed = db.engine.search.use(lambda c: c.execute(INDEXED).fetchone()[0]) or 1
    return [
        Figure("indexing all words", seconds, "s"),
        Figure("indexed per second", messages / seconds, "rows"),
        Figure("indexing a message, CPU", 1e6 * cpu / indexed, "µs"),
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


def _question_figures(db: SessionDB, rounds: int) -> list[Figure]:
    """Questions of four frequent words and a rarer one, in CPU time."""
    chance = random.Random(5)
    terms = db.engine.search.use(lambda c: [row[0] for row in c.execute(TERMS)]) or []
    words = [term for term in terms if term.isascii() and term.isalpha()]
    times = []
    for _ in range(rounds):
        chosen = [*chance.sample(words[:300], 4), chance.choice(words[300:] or words)]
        began = time.process_time()
        db.search.answer(f"how did we {' '.join(chosen)}")
        times.append(1000 * (time.process_time() - began))
    return [
        Figure("a question, CPU, p50", median(times), "ms"),
        Figure("a question, CPU, p95", percentile(times, 0.95), "ms", limit=60),
    ]


def _purge_figures(context: BenchmarkContext) -> list[Figure]:
    """Deleting conversations of six messages permanently, in CPU time."""
    with context.folder() as folder, SessionDB(folder / "state.db") as db:
        for number in range(PURGED_SESSIONS):
            texts = [f"message {number} {place} of the talk" for place in range(6)]
            db.create_session(f"s{number}", "cli")
            rows = [{"role": "user", "content": text} for text in texts]
            db.append_messages_batch(f"s{number}", rows)
        while not db.search.fill(5):
            pass
        began = time.process_time()
        for number in range(10):
            db.trash.purge(f"s{number * 7}")
        each = 100 * (time.process_time() - began)
    return [Figure("purging one of ten conversations, CPU", each, "ms", limit=5)]


def _first_search_figures(context: BenchmarkContext) -> list[Figure]:
    """The first question to a history of short messages without an index, in CPU time."""
    count = FIRST_MESSAGES // (100 if context.is_quick else 1)
    chance = random.Random(1)
    letters = [chr(97 + number) for number in range(26)]
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = [(number + 1) ** -0.9 for number in range(len(words))]
    with context.folder() as folder, SessionDB(folder / "state.db") as db:
        for number in range(count // FIRST_SESSION_MESSAGES):
            chosen = chance.choices(words, weights, k=28 * FIRST_SESSION_MESSAGES)
            texts = (" ".join(chosen[at : at + 28])[:166] for at in range(0, len(chosen), 28))
            rows = [{"role": "user", "content": text} for text in texts]
            db.create_session(f"s{number}", "cli")
            db.append_messages_batch(f"s{number}", rows)
        began = time.process_time()
        db.search.answer(f"where did we put the {words[100]} and {words[9_000]}")
        cpu = time.process_time() - began
    return [
        Figure("first question to 300,000 messages, CPU", cpu, "s", limit=5),
        Figure("indexing a short message, CPU", 1e6 * cpu / count, "µs", limit=20),
    ]


def _scan_work(bare: sqlite3.Connection, word: str) -> Work:
    """A scan with plain SQLite, without an index."""
    return lambda: bare.execute(SCAN, (f"%{word}%",)).fetchall()


def _fill_tools(db: SessionDB, bare: sqlite3.Connection) -> list[Figure]:
    before, started = db.engine.search.size(), time.process_time()
    while not db.search.fill(5, with_tools=True):
        pass
    cpu = time.process_time() - started
    db.engine.search.use(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    count, text = bare.execute(TOOL_TEXT).fetchone()
    size = (db.engine.search.size() - before) / 1e6
    return [
        Figure("indexing tool text, CPU", cpu, "s"),
        Figure("indexing a message with tool text, CPU", 1e6 * cpu / count, "µs", limit=150),
        Figure("index of tool text", size, "MB", baseline=text / 1e6, limit=0.5, limits="ratio"),
    ]


def _tool_figures(db: SessionDB, rounds: int) -> list[Figure]:
    """Searches of tool text, compared with FTS5 on the same tables."""
    numbers = db.engine.search.use(part_numbers) or []
    tables = [part_name(number) for number in reversed(numbers)]

    def rare_term(connection: sqlite3.Connection) -> str:
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.part_vocabulary"
            f" USING fts5vocab(main, {tables[-1]}, row)"
        )
        return str(connection.execute(RARE_TERM).fetchone()[0])

    words = {
        "a word of no tool": "zzzzqqqq",
        "a rare word of a tool": db.engine.search.use(rare_term) or "",
        "a common word of tools": "error",
        "a phrase of tools": '"tests passed"',
    }
    figures = []
    for name, query in words.items():
        work = functools.partial(db.search_messages, query, with_tools=True)
        own = _match_work(db, ["body", *tables], query.strip('"'))
        times, matching = interleave(rounds, work, own)
        baseline = median(matching)
        figures += [
            Figure(f"{name}, p50", median(times), "ms", baseline),
            Figure(f"{name}, p95", percentile(times, 0.95), "ms", baseline, limit=100),
        ]
    return figures


def _phrase_figures(db: SessionDB, bare: sqlite3.Connection, rounds: int) -> list[Figure]:
    """Phrases, compared with MATCH of FTS5 itself for the same number of row IDs.

    FTS5 returns IDs only; the second baseline also reads the messages and their neighbours,
    as every search must.
    """
    words = token_texts(bare.execute(OLDEST_QUESTION).fetchone()[0])[4:7]
    phrases = {"a phrase": " ".join(words), "a phrase that does not occur": "error error the the"}
    figures = []
    for name, phrase in phrases.items():
        times, matching, reading = interleave(
            rounds,
            functools.partial(db.search_messages, f'"{phrase}"'),
            _match_work(db, ["body"], phrase),
            _read_work(db, bare, phrase),
        )
        value = median(times)
        figures += [
            Figure(f"{name}, FTS5 alone", value, "ms", median(matching), 2, "ratio"),
            Figure(f"{name}, FTS5 and reading", value, "ms", median(reading), 2, "ratio"),
        ]
    return figures


def _match(connection: sqlite3.Connection, tables: list[str], phrase: str) -> list[int]:
    """IDs of the newest 20 messages, by FTS5 itself."""
    ids: list[int] = []
    for table in tables:
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?"  # noqa: S608
        ids += [row[0] for row in connection.execute(sql, (f'words : "{phrase}"', 20 - len(ids)))]
        if len(ids) == 20:
            break
    return ids


def _match_work(db: SessionDB, tables: list[str], phrase: str) -> Work:
    return lambda: db.engine.search.use(lambda c: _match(c, tables, phrase))


def _read_work(db: SessionDB, bare: sqlite3.Connection, phrase: str) -> Work:
    def run() -> None:
        for row_id in db.engine.search.use(lambda c: _match(c, ["body"], phrase)) or []:
            row = bare.execute("SELECT session_id, content FROM messages WHERE id = ?", (row_id,))
            place = (row.fetchone()[0], row_id)
            bare.execute(BEFORE, place).fetchall()
            bare.execute(AFTER, place).fetchall()

    return run


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
