"""Statements on the tables that record the layout of a history."""

from __future__ import annotations

from typing import Final

from hermes_core.errors import StoreUnavailableError

# In a database into which a history is being copied.
UNFINISHED_COPY: Final = "unfinished_copy"
READ_LAYOUT: Final = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = ?"
RAISE_LAYOUT: Final = """
    INSERT INTO hermes_layout (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE CAST(hermes_layout.value AS INTEGER) < CAST(excluded.value AS INTEGER)
"""
REMOVE_LAYOUT: Final = "DELETE FROM hermes_layout WHERE name = ?"
ADD_LAYOUT: Final = "INSERT INTO hermes_layout (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
RECORD_MIGRATION: Final = """
    INSERT INTO hermes_migration (number, name, applied_at, position) VALUES (?, ?, ?, ?)
"""


def refuse_unfinished_copy(mark: int, place: str) -> None:
    """Refuse a database that holds only a part of a history; *mark* is that of UNFINISHED_COPY."""
    if mark:
        raise StoreUnavailableError(
            f"{place} is an unfinished copy of a history. Run `hermes store copy --to …` again on "
            "the machine that has the original; if the setting store.url already names the copy, "
            "run `hermes config unset store.url` first."
        )
