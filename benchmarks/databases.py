"""A history in PostgreSQL compared with the same history in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Figure, interleave, median
from hermes_core.clock import SystemClock
from hermes_state import SessionDB
from hermes_state.engine.engine import open_database
from hermes_state.portable.store_copy import StoreCopy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from surroundings import BenchmarkContext

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
CLAIMING_PROCESSES: Final = 4
CLAIMED_MESSAGES: Final = 2_000
QUICK_CLAIMED_MESSAGES: Final = 40
CLAIM_SCRIPT: Final = """
from hermes_state.engine.sqlite import driver
driver.install()
from hermes_state import SessionDB
with SessionDB() as db:
    while (row := db.inbox.claim()) is not None:
        db.inbox.settle(row.inbox_id)
        print(row.inbox_id)
"""


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark; none without PostgreSQL."""
    sys.path.append(str(TESTS))
    from support.postgres import running_postgres  # noqa: PLC0415 - the server of the tests

    with (
        running_postgres(is_durable=not context.is_quick) as server,
        server.history() as url,
        context.home(),
    ):
        copied = _copy(context, url)
        with _store(url) as db, context.copy("small") as path, SessionDB(path) as file:
            db.search.fill()
            file.search.fill()
            return [copied, *_compared(context, db, file), *_claims(context, db, url)]


@contextmanager
def _store(url: str) -> Iterator[SessionDB]:
    os.environ["HERMES_STORE_URL"] = url
    try:
        with SessionDB() as db:
            yield db
    finally:
        del os.environ["HERMES_STORE_URL"]


def _copy(context: BenchmarkContext, url: str) -> Figure:
    path = context.history("small")
    started = time.perf_counter()
    with SessionDB(path) as db, closing(open_database(url, read_only=False)) as target:
        writer = target.open_writer(SystemClock())
        with db.engine.database.snapshot() as source:
            rows = StoreCopy(source, target, writer).run(lambda *_progress: None).rows
        writer.close()
    return Figure("copied and compared row", 1e6 * (time.perf_counter() - started) / rows, "µs")


def _compared(context: BenchmarkContext, db: SessionDB, file: SessionDB) -> list[Figure]:
    word, phrase = "error", '"the file"'
    cases: list[tuple[str, Callable[[SessionDB], object], float]] = [
        ("list 20 most recent", lambda s: s.lists.sessions(limit=20, order_by_last_active=True), 3),
        ("search a word", lambda s: s.search.find(word), 3),
        ("search a phrase", lambda s: s.search.find(phrase), 3),
        ("search two Chinese characters", lambda s: s.search.find("恢复"), 3),
    ]
    figures = []
    for name, work, limit in cases:
        base, value = interleave(
            context.rounds(100), lambda work=work: work(file), lambda work=work: work(db)
        )
        figures.append(Figure(name, median(value), "ms", median(base), limit or None, "ratio"))
    return [*figures, *_appends(context, db)]


def _appends(context: BenchmarkContext, db: SessionDB) -> list[Figure]:
    """A message with all that belongs to it, compared with one bare row."""
    session = db.create_session("bench", "cli")
    text = "x" * 4000
    db.engine.write(lambda tx: tx.run("CREATE TABLE bare (id SERIAL PRIMARY KEY, text TEXT)"))
    insert = "INSERT INTO bare (text) VALUES (?)"
    base, value = interleave(
        context.rounds(200),
        lambda: db.engine.write(lambda tx: tx.run(insert, (text,)), is_conditional=True),
        lambda: db.append_message(session, "user", text),
    )
    return [Figure("append a message", median(value), "ms", median(base), 2, "ratio")]


def _claims(context: BenchmarkContext, db: SessionDB, url: str) -> list[Figure]:
    count = QUICK_CLAIMED_MESSAGES if context.is_quick else CLAIMED_MESSAGES
    for number in range(count):
        db.inbox.receive(
            platform="local", account="a", chat_id=str(number), message_id=str(number),
            session_key=f"place{number}", payload={"text": "hello"},
        )  # fmt: skip
    environment = {**os.environ, "HERMES_STORE_URL": url}
    command = [sys.executable, "-c", CLAIM_SCRIPT]
    started = time.perf_counter()
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(CLAIMING_PROCESSES)
    ]
    claimed = [line for process in processes for line in process.communicate()[0].split()]
    milliseconds = 1000 * (time.perf_counter() - started) / count
    assert len(claimed) == len(set(claimed)) == count, "a message was claimed twice"
    return [Figure(f"claim and settle, {CLAIMING_PROCESSES} processes", milliseconds, "ms")]
