"""A whole history put into a file: played in the order of time, written in bulk."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state import SessionDB
from hermes_state.engine.driver import sqlite3
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


def quiet(_text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Made:
    """What was made."""

    path: Path
    sessions: int
    messages: int
    total_bytes: int


class Running(NamedTuple):
    """A session under way, and its next message."""

    session: rows.Session
    messages: Iterator[rows.Message]
    message: rows.Message | None = None


@dataclass
class Playing:
    """Every session of a history, interleaved as they were lived."""

    rng: Random
    words: Texts
    scale: float
    titles: set[str] = field(default_factory=set)
    ended: list[tuple[rows.Session, dict[str, Any]]] = field(default_factory=list)
    _waiting: list[tuple[float, int, Any, Any]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    def messages(self, roots: list[plan.Planned]) -> Iterator[rows.Message]:
        """All messages in the order of time; `ended` gathers the sessions meanwhile."""
        for root in roots:
            self._wait(root.starts_at, root, None)
        while self._waiting:
            _, _, what, parent = heapq.heappop(self._waiting)
            if isinstance(what, plan.Planned):
                self._start(what, parent)
            else:
                yield what.message
                self._go_on(what)

    def _wait(self, until: float, what: plan.Planned | Running, parent: Any) -> None:
        heapq.heappush(self._waiting, (until, next(self._order), what, parent))

    def _start(self, planned: plan.Planned, parent: rows.Session | None) -> None:
        session = self._begin(planned, parent)
        played = rows.play(self.rng, self.words, session, self.scale)
        for child in planned.during:
            child.starts_at = planned.starts_at + 20
            self._wait(child.starts_at, child, session)
        self._go_on(Running(session, itertools.islice(played, planned.rows)))

    def _go_on(self, running: Running) -> None:
        """Have the next message of a session wait for its time, or end the session."""
        message = next(running.messages, None)
        if message is not None:
            self._wait(message.timestamp, Running(running.session, running.messages, message), None)
            return
        session = running.session
        self.ended.append((session, session.columns(self.rng)))
        for child in session.planned.then:
            child.starts_at = session.now + 1
            self._wait(child.starts_at, child, session)

    def _begin(self, planned: plan.Planned, parent: rows.Session | None) -> rows.Session:
        session = rows.begin(self.rng, self.words, planned, parent)
        if session.title in self.titles:  # titles are unique
            session.title = f"{session.title.partition(' #')[0]} {session.session_id[-6:]}"
        if session.title:
            self.titles.add(session.title)
        return session


def make(path: Path, size: plan.Size, seed: int = 1, report: Report = quiet) -> Made:
    """Make the history *size* asks for at *path*, which must not exist."""
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
            report("filling the search index of the original")
            layouts.add_search(connection, size.kind)
        connection.execute("PRAGMA journal_mode = WAL")
    if size.kind == "native":
        _make_native(part, seed, report)
    part.rename(path)
    return Made(path, size.sessions, size.messages, path.stat().st_size)


def _fill(connection: sqlite3.Connection, size: plan.Size, seed: int, report: Report) -> None:
    rng = Random(seed)
    words = Texts(rng)
    playing = Playing(rng, words, _scale(size, words))
    prompts = [words.english.cut(rng, PROMPT_BYTES) for _ in range(PROMPTS)]
    lengths = plan.session_lengths(rng, size.sessions, size.messages)
    messages = playing.messages(plan.conversations(rng, lengths))
    version = 16 if size.kind == "schema16" else 26
    connection.execute("BEGIN")
    connection.execute("INSERT INTO schema_version VALUES (?)", (version,))
    layouts.put_prompts(connection, size.kind, prompts)
    done = 0
    while batch := list(itertools.islice(messages, BATCH_ROWS)):
        connection.executemany(layouts.PUT_MESSAGE, batch)
        _put_sessions(connection, size.kind, playing, prompts)
        done += len(batch)
        report(f"{done:,} of {size.messages:,} messages")
    _put_sessions(connection, size.kind, playing, prompts)
    if version == 26:
        connection.execute(layouts.PUT_USAGE)
    connection.execute("COMMIT")


def _put_sessions(
    connection: sqlite3.Connection, kind: str, playing: Playing, prompts: list[str]
) -> None:
    made = [
        layouts.session_row(kind, row, prompts[session.prompt], session.now)
        for session, row in playing.ended
    ]
    if made:
        connection.executemany(layouts.put_session(made[0]), made)
    playing.ended.clear()


def _scale(size: plan.Size, words: Texts) -> float:
    """By how much tools' results must be longer than in life to fill the wanted bytes."""
    if size.total_bytes is None:
        return 1.0
    short, natural = (_mean_bytes(words, scale) for scale in (0.25, 1.0))
    prompts = PROMPT_BYTES * (size.sessions if size.kind == "schema16" else PROMPTS)
    copies = 1 + (SEARCH_FACTOR[size.kind] if size.has_search else 0)
    wanted = (size.total_bytes - size.sessions * SESSION_BYTES - prompts) / size.messages
    wanted = (wanted - ROW_OVERHEAD_BYTES) / copies
    return max(0.02, 1 + 0.75 * (wanted - natural) / (natural - short))


def _mean_bytes(words: Texts, scale: float) -> float:
    """The mean size of a message's text, from a sample."""
    rng = Random(0)
    roots = plan.conversations(rng, plan.session_lengths(rng, *SAMPLE))
    sizes = [
        len(message.content.encode()) + len(message.tool_calls or "") + len(message.reasoning or "")
        for message in Playing(rng, words, scale).messages(roots)
    ]
    return sum(sizes) / len(sizes)


def _make_native(path: Path, seed: int, report: Report) -> None:
    """Our own tables: the index as the store builds it, an identity for every message."""
    with SessionDB(path) as db:
        report("building the session index")
        if not db.wait_for_index(INDEX_SECONDS):
            raise TimeoutError("the session index was not built in time")
    rng = Random(seed)
    report("giving messages their identity")
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
