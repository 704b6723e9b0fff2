"""The search file: where the words of the history occur.

The engine opens it with every store, so this module imports little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.engine.side_file import SideFile

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT: Final = "1"

TABLES: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # When the messages of each thousand ids were said: how times become ranges of ids.
    "CREATE TABLE span (block INTEGER PRIMARY KEY, low REAL NOT NULL, high REAL NOT NULL)",
    # The words themselves are not stored, only where they occur. `facets` is a made-up
    # word for the source, so that filtering by it is part of the search.
    "CREATE VIRTUAL TABLE body USING fts5(words, facets, content='', contentless_delete=1,"
    " tokenize='ascii')",
    # Every word once, and its three-letter pieces: how pieces of words are found.
    "CREATE TABLE term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE VIRTUAL TABLE gram USING fts5(text, content='', contentless_delete=1, detail=none,"
    " tokenize='trigram case_sensitive 1')",
)


class SearchFile(SideFile):
    """One connection to the search file, used by one thread at a time."""

    def __init__(self, database: Path, *, with_tools: bool) -> None:
        name = "search.db" if database.name == "state.db" else f"{database.name}.search"
        layout = LAYOUT + ("+tools" if with_tools else "")
        super().__init__(database.with_name(name), "the search index", layout, TABLES)
