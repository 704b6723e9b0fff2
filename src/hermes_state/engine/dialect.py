"""What differs between database engines, in one place.

Everything else in this package is SQL that SQLite and PostgreSQL both take: `?` marks,
ON CONFLICT, partial indexes, RETURNING.
"""

from __future__ import annotations

from typing import Protocol


def literally(text: str) -> str:
    """A pattern that matches *text* itself, whatever characters it has."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def beginning_with(text: str) -> str:
    """A pattern that matches whatever begins with *text*."""
    return literally(text) + "%"


def containing(text: str) -> str:
    """A pattern that matches whatever contains *text*."""
    return "%" + literally(text) + "%"


class Dialect(Protocol):
    """The words in which an engine says what it says differently."""

    name: str

    def table(self, template: str) -> str:
        """A CREATE statement of ours in this engine's words."""
        ...


class SqliteDialect:
    """SQLite."""

    name = "sqlite"

    def table(self, template: str) -> str:
        return template.format(
            blob="BLOB",
            identity="INTEGER PRIMARY KEY AUTOINCREMENT",
            clustered="WITHOUT ROWID",
        )
