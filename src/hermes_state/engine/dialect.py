"""SQL text that depends on the engine: column types of our tables, LIKE patterns."""

from __future__ import annotations


def literally(text: str) -> str:
    """A pattern that matches *text* itself, whatever characters it has."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def beginning_with(text: str) -> str:
    """A pattern that matches whatever begins with *text*."""
    return literally(text) + "%"


def containing(text: str) -> str:
    """A pattern that matches whatever contains *text*."""
    return "%" + literally(text) + "%"


class SqliteDialect:
    """SQLite."""

    name = "sqlite"

    def table(self, template: str) -> str:
        return template.format(
            blob="BLOB",
            identity="INTEGER PRIMARY KEY AUTOINCREMENT",
            clustered="WITHOUT ROWID",
        )
