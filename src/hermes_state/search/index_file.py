"""The search file: an inverted index of the history.

The engine imports this module with every store, so it has few imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.engine.sqlite.side_file import SideFile, read_meta

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.engine.sqlite.driver import sqlite3

SEARCH_LAYOUT: Final = "3"
MAX_KNOWN_TERMS: Final = 200_000

SEARCH_TABLES: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # Time range of each block of 1024 message IDs; converts times into ID ranges.
    "CREATE TABLE span (block INTEGER PRIMARY KEY, low REAL NOT NULL, high REAL NOT NULL)",
    # The text itself is not stored, only the index. `facets` holds a token for the source,
    # so that the index can filter by it. Deleted entries are removed from the file at once.
    "CREATE VIRTUAL TABLE body USING fts5(words, facets, content='', tokenize='ascii')",
    "INSERT INTO body (body, rank) VALUES ('secure-delete', 1)",
    # What the rank of a message depends on besides its words.
    "CREATE TABLE message (id INTEGER PRIMARY KEY, session INTEGER NOT NULL,"
    " previous INTEGER NOT NULL, tokens INTEGER NOT NULL)",
    "CREATE TABLE session (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
    " source TEXT NOT NULL, last INTEGER NOT NULL, messages INTEGER NOT NULL,"
    " tokens INTEGER NOT NULL)",
    # Occurrences of a term, and the number of messages with it.
    "CREATE VIRTUAL TABLE occurrence USING fts5vocab(body, instance)",
    "CREATE VIRTUAL TABLE frequency USING fts5vocab(body, col)",
    # Vectors of messages, if there is a model for them (meaning.py).
    "CREATE TABLE vector (id INTEGER PRIMARY KEY, model TEXT NOT NULL, data BLOB NOT NULL)",
    # Every term and its trigrams, for substring search.
    "CREATE TABLE term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE VIRTUAL TABLE gram USING fts5(text, content='', detail=none,"
    " tokenize='trigram case_sensitive 1')",
    "INSERT INTO gram (gram, rank) VALUES ('secure-delete', 1)",
    # The same for messages with tool text; their words are in one table per range of message
    # IDs, which is created when the range is indexed (tool_index.py).
    "CREATE TABLE tool_part (number INTEGER PRIMARY KEY)",
    "CREATE TABLE tool_term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE VIRTUAL TABLE tool_gram USING fts5(text, content='', detail=none,"
    " tokenize='trigram case_sensitive 1')",
    "INSERT INTO tool_gram (tool_gram, rank) VALUES ('secure-delete', 1)",
)


class KnownTerms:
    """Terms that are in the file, so that most words of new messages need no look-up."""

    def __init__(self) -> None:
        self._terms: dict[str, set[str]] = {}
        self._purges = ""

    def unknown(self, connection: sqlite3.Connection, table: str, vocabulary: set[str]) -> set[str]:
        """Those that may not be in a table; they are noted as known."""
        purges = read_meta(connection, "purges") or ""
        if purges != self._purges:  # another process may have deleted some
            self._terms.clear()
            self._purges = purges
        known = self._terms.setdefault(table, set())
        unknown = vocabulary - known
        if len(known) + len(unknown) > MAX_KNOWN_TERMS:
            known.clear()
        known |= unknown
        return unknown

    def clear(self) -> None:
        """Forget all, after a transaction that was rolled back."""
        self._terms.clear()


class SearchFile(SideFile):
    """A connection to the search file, used by one thread at a time."""

    def __init__(self, database: Path, *, with_tools: bool) -> None:
        name = "search.db" if database.name == "state.db" else f"{database.name}.search"
        layout = SEARCH_LAYOUT + ("+tools" if with_tools else "")
        super().__init__(database.with_name(name), "the search index", layout, SEARCH_TABLES)
        self.known = KnownTerms()

    def close(self) -> None:
        """Close the connection; the file may be another one after that."""
        super().close()
        self.known.clear()
