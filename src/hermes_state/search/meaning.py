"""Search by meaning: a vector for each message, filled in the background, newest first.

Vectors are derived data beside the index of words. Nothing is computed unless a model is
installed or an endpoint is named.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.config.file import ConfigFile
from hermes_core.errors import EmbeddingError
from hermes_state.search import embedders
from hermes_state.search.candidates import MAX_ROW_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.search.candidates import Candidate
    from hermes_state.search.embedders import Embedder
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.searcher import Searcher

BATCH_MESSAGES: Final = 16
MAX_CHARACTERS: Final = 1_200  # of a message; the model reads about as much
READ_VECTORS: Final = 20_000
MIN_SIMILARITY: Final = 0.1
NEAREST: Final = 100

FILE_STATEMENTS: Final = (
    """
    SELECT m.id FROM message m LEFT JOIN vector v ON v.id = m.id AND v.model = ?
    WHERE v.id IS NULL AND m.id < ? ORDER BY m.id DESC LIMIT ?
    """,
    "INSERT OR REPLACE INTO vector (id, model, data) VALUES (?, ?, ?)",
    "SELECT id, data FROM vector WHERE model = ? AND id > ? ORDER BY id LIMIT ?",
    "DELETE FROM vector WHERE model <> ?",
    "SELECT (SELECT count(*) FROM vector WHERE model = ?), (SELECT count(*) FROM message)",
)
DATABASE_STATEMENTS: Final = (
    """
    SELECT w.message_id FROM hermes_search_words w
    LEFT JOIN hermes_search_vector v ON v.id = w.message_id AND v.model = ?
    WHERE v.id IS NULL AND w.is_tool = 0 AND w.tokens > 0 AND w.message_id < ?
    ORDER BY w.message_id DESC LIMIT ?
    """,
    """
    INSERT INTO hermes_search_vector (id, model, data)
    SELECT ?, ?, ? ON CONFLICT (id) DO UPDATE SET model = excluded.model, data = excluded.data
    """,
    "SELECT id, data FROM hermes_search_vector WHERE model = ? AND id > ? ORDER BY id LIMIT ?",
    "DELETE FROM hermes_search_vector WHERE model <> ?",
    """
    SELECT (SELECT count(*) FROM hermes_search_vector WHERE model = ?),
        (SELECT count(*) FROM hermes_search_words WHERE is_tool = 0 AND tokens > 0)
    """,
)


class VectorStatements(NamedTuple):
    """The statements of an engine."""

    missing: str
    insert: str
    read: str
    delete_others: str
    progress: str


class VectorTable:
    """The vectors of a history."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._engine = engine
        self._model = model
        self._is_file = engine.database.is_file
        statements = FILE_STATEMENTS if self._is_file else DATABASE_STATEMENTS
        self._sql = VectorStatements(*statements)

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        if self._is_file:
            return self._engine.search.use(lambda c: c.execute(sql, tuple(values)).fetchall()) or []
        return self._engine.read(lambda reader: list(reader.rows(sql, tuple(values))))

    def _write(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        if self._is_file:
            self._engine.search.use(lambda c: c.executemany(sql, rows))
        else:
            self._engine.write_upkeep(lambda tx: tx.many(sql, rows))

    def missing(self, below: int) -> list[int]:
        """The newest messages below an ID that have no vector."""
        return [
            row[0] for row in self._rows(self._sql.missing, (self._model, below, BATCH_MESSAGES))
        ]

    def insert(self, rows: list[tuple[int, bytes]]) -> None:
        """Store vectors."""
        self._write(self._sql.insert, [(row_id, self._model, data) for row_id, data in rows])

    def read(self) -> Iterator[list[tuple[int, bytes]]]:
        """All vectors, in portions."""
        after = 0
        while rows := self._rows(self._sql.read, (self._model, after, READ_VECTORS)):
            yield [(row_id, bytes(data)) for row_id, data in rows]
            after = rows[-1][0]

    def discard_others(self) -> None:
        """Delete the vectors of other models."""
        self._write(self._sql.delete_others, [(self._model,)])

    def counts(self) -> tuple[int, int]:
        """The numbers of vectors and of messages."""
        found = self._rows(self._sql.progress, (self._model,))
        return (int(found[0][0]), int(found[0][1])) if found else (0, 0)


class MeaningIndex:
    """Fills and searches the vectors of a history."""

    def __init__(self, engine: Engine, searcher: Searcher | DatabaseSearcher) -> None:
        self._searcher = searcher
        self._settings = ConfigFile.of_home().settings()
        self.name = embedders.configured_name(self._settings)
        self._table = VectorTable(engine, self.name)
        self._embedder: Embedder | None = None
        self._has_discarded = False
        self._passed_over = 0  # messages that get no vector: those in the trash

    def _model(self) -> Embedder:
        if self._embedder is None:
            self._embedder = embedders.open_embedder(self._settings)
        if self._embedder is None:
            raise EmbeddingError("No model for search by meaning is configured.")
        return self._embedder

    def fill(self, seconds: float) -> bool:
        """Compute vectors for at most *seconds*, newest first; whether all messages have one."""
        if not self.name:
            return True
        if not self._has_discarded:
            self._table.discard_others()
            self._has_discarded = True
        deadline = time.monotonic() + seconds
        below, passed_over = MAX_ROW_ID, 0
        while ids := self._table.missing(below):
            below = ids[-1]
            messages = self._searcher.by_ids(ids)
            self._embed(messages)
            passed_over += len(ids) - len(messages)
            if time.monotonic() >= deadline:
                return False
        self._passed_over = passed_over
        return True

    def _embed(self, messages: list[Candidate]) -> None:
        if not messages:
            return  # of conversations in the trash
        texts = [each.text(with_tools=False)[:MAX_CHARACTERS] for each in messages]
        vectors = embedders.packed(self._model().embed(texts))
        ids = [each.row.id for each in messages]
        self._table.insert(list(zip(ids, vectors, strict=True)))

    def progress(self) -> tuple[int, int] | None:
        """The numbers of messages with a vector and of all; None if there is nothing to do."""
        if not self.name:
            return None
        done, total = self._table.counts()
        total -= self._passed_over
        return None if done >= total else (done, total)

    def nearest(self, text: str) -> list[tuple[int, float]]:
        """The messages with the most similar meaning, best first, and how similar they are."""
        if not self.name:
            return []
        query = None
        best: list[tuple[float, int]] = []
        for rows in self._table.read():
            if query is None:
                query = self._model().embed([text])[0]
            found = embedders.similarities([data for _, data in rows], query)
            pairs = zip(found.tolist(), (row_id for row_id, _ in rows), strict=True)
            best = heapq.nlargest(NEAREST, [*best, *pairs])
        return [(row_id, value) for value, row_id in best if value >= MIN_SIMILARITY]
