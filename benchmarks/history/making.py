"""Writes a generated history to a file: in chronological order, in bulk."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from history import layouts, plan, rows
from history.texts import Texts

if TYPE_CHECKING:
    from pathlib import Path

BATCH_ROWS: Final = 5_000
PROMPTS: Final = 40
PROMPT_BYTES: Final = 28_000
ROW_OVERHEAD_BYTES: Final = 330
SESSION_BYTES: Final = 500
SEARCH_FACTOR: Final = {"schema16": 4.8, "schema26": 0.3, "native": 0.3}
INDEX_SECONDS: Final = 3600
SAMPLE: Final = (60, 3_000)

Report = Callable[[str], None]


def ignore_progress(_text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class GeneratedHistory:
    """A generated history."""

    path: Path
    sessions: int
    messages: int
    total_bytes: int


class RunningSession(NamedTuple):
    """A session in progress, and its next message."""

    session: rows.Session
    messages: Iterator[rows.Message]
    message: rows.Message | None = None


@dataclass
class HistoryPlayer:
    """Generates the sessions of a history, interleaved by time."""

    rng: Random
    texts: Texts
    scale: float
    titles: set[str] = field(default_factory=set)
    ended: list[tuple[rows.Session, dict[str, Any]]] = field(default_factory=list)
    _queue: list[tuple[float, int, Any, Any]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    def messages(self, roots: list[plan.Planned]) -> Iterator[rows.Message]:
        """All messages in chronological order; `ended` collects the sessions."""
        for root in roots:
            self._schedule(root.starts_at, root, None)
        while self._queue:
            _, _, item, parent = heapq.heappop(self._queue)
            if isinstance(item, plan.Planned):
                self._start(item, parent)
            else:
                yield item.message
                self._advance(item)

    def _schedule(self, until: float, item: plan.Planned | RunningSession, parent: Any) -> None:
        heapq.heappush(self._queue, (until, next(self._order), item, parent))

    def _start(self, planned: plan.Planned, parent: rows.Session | None) -> None:
        session = self._create_session(planned, parent)
        messages = rows.play(self.rng, self.texts, session, self.scale)
        for child in planned.during:
            child.starts_at = planned.starts_at + 20
            self._schedule(child.starts_at, child, session)
        self._advance(RunningSession(session, itertools.islice(messages, planned.rows)))

    def _advance(self, running: RunningSession) -> None:
        """Schedule the next message of a session, or end the session."""
        message = next(running.messages, None)
        if message is not None:
            self._schedule(
                message.timestamp, RunningSession(running.session, running.messages, message), None
            )
            return
        session = running.session
        self.ended.append((session, session.columns(self.rng)))
        for child in session.planned.then:
            child.starts_at = session.now + 1
            self._schedule(child.starts_at, child, session)

    def _create_session(self, planned: plan.Planned, parent: rows.Session | None) -> rows.Session:
        session = rows.begin(self.rng, self.texts, planned, parent)
        if session.title in self.titles:  # titles are unique
            session.title = f"{session.title.partition(' #')[0]} {session.session_id[-6:]}"
        if session.title:
            self.titles.add(session.title)
        return session


def make(
    path: Path, size: plan.Size, seed: int = 1, report: Report = ignore_progress
) -> GeneratedHistory:
    """Write a history of *size* to *path*, which must not exist."""
    if path.exists():
        raise FileExistsError(path)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            connection.execute(f"PRAGMA {pragma}")
        tables, indexes = layouts.statements(size.kind)
        for sql in tables:
            connection.execute(sql)
        _fill(connection, size, seed, report)
        for sql in indexes:
            report(sql)
            connection.execute(sql)
        if size.has_search:
            report("filling the search index of hermes-agent")
            layouts.add_search(connection, size.kind)
        connection.execute("PRAGMA journal_mode = WAL")
    if size.kind == "native":
        _make_native(part, seed, report)
    part.rename(path)
    return GeneratedHistory(path, size.sessions, size.messages, path.stat().st_size)


def _fill(connection: sqlite3.Connection, size: plan.Size, seed: int, report: Report) -> None:
    rng = Random(seed)
    texts = Texts(rng)
    player = HistoryPlayer(rng, texts, _scale(size, texts))
    prompts = [texts.english.cut(rng, PROMPT_BYTES) for _ in range(PROMPTS)]
    lengths = plan.session_lengths(rng, size.sessions, size.messages)
    messages = player.messages(plan.conversations(rng, lengths))
    version = 16 if size.kind == "schema16" else 26
    connection.execute("BEGIN")
    connection.execute("INSERT INTO schema_version VALUES (?)", (version,))
    layouts.insert_prompts(connection, size.kind, prompts)
    done = 0
    while batch := list(itertools.islice(messages, BATCH_ROWS)):
        connection.executemany(layouts.INSERT_MESSAGE, batch)
        _insert_sessions(connection, size.kind, player, prompts)
        done += len(batch)
        report(f"{done:,} of {size.messages:,} messages")
    _insert_sessions(connection, size.kind, player, prompts)
    if version == 26:
        connection.execute(layouts.INSERT_USAGE)
    connection.execute("COMMIT")


def _insert_sessions(
    connection: sqlite3.Connection, kind: str, player: HistoryPlayer, prompts: list[str]
) -> None:
    session_rows = [
        layouts.session_row(kind, row, prompts[session.prompt], session.now)
        for session, row in player.ended
    ]
    if session_rows:
        connection.executemany(layouts.session_insert_sql(session_rows[0]), session_rows)
    player.ended.clear()


def _scale(size: plan.Size, texts: Texts) -> float:
    """The factor for the length of tool results that gives the requested size."""
    if size.total_bytes is None:
        return 1.0
    short, natural = (_mean_bytes(texts, scale) for scale in (0.25, 1.0))
    prompts = PROMPT_BYTES * (size.sessions if size.kind == "schema16" else PROMPTS)
    copies = 1 + (SEARCH_FACTOR[size.kind] if size.has_search else 0)
    message_bytes = (size.total_bytes - size.sessions * SESSION_BYTES - prompts) / size.messages
    message_bytes = (message_bytes - ROW_OVERHEAD_BYTES) / copies
    return max(0.02, 1 + 0.75 * (message_bytes - natural) / (natural - short))


def _mean_bytes(texts: Texts, scale: float) -> float:
    """Mean size of a message's text, from a sample."""
    rng = Random(0)
    roots = plan.conversations(rng, plan.session_lengths(rng, *SAMPLE))
    sizes = [
        len(message.content.encode()) + len(message.tool_calls or "") + len(message.reasoning or "")
        for message in HistoryPlayer(rng, texts, scale).messages(roots)
    ]
    return sum(sizes) / len(sizes)


def _make_native(path: Path, seed: int, report: Report) -> None:
    """Add the tables of Hermes: the session index, and an identity for every message."""
    with SessionDB(path) as db:
        report("building the session index")
        if not db.wait_for_index(INDEX_SECONDS):
            raise TimeoutError("the session index was not built in time")
    rng = Random(seed)
    report("adding message identities")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        times = connection.execute("SELECT timestamp, id FROM messages ORDER BY id")
        connection.executemany(
            "INSERT INTO hermes_message (uid, message_id) VALUES (?, ?)",
            ((_uid(rng, timestamp, row_id), row_id) for timestamp, row_id in times),
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _uid(rng: Random, timestamp: float, row_id: int) -> bytes:
    high = int(timestamp * 1000).to_bytes(6, "big")
    return high + (0x70000000 + row_id).to_bytes(4, "big") + rng.randbytes(6)
