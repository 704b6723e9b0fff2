"""SQL text that depends on the database: column types of own tables, LIKE patterns."""

from __future__ import annotations


def escape_like(text: str) -> str:
    """*text* with LIKE's special characters escaped."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def prefix_pattern(text: str) -> str:
    """A LIKE pattern for texts that start with *text*."""
    return escape_like(text) + "%"


def substring_pattern(text: str) -> str:
    """A LIKE pattern for texts that contain *text*."""
    return "%" + escape_like(text) + "%"


class SqliteDialect:
    """Column types of SQLite."""

    name = "sqlite"

    def table(self, template: str) -> str:
        """The CREATE statement for a template of `schema.own`."""
        return template.format(
            blob="BLOB",
            identity="INTEGER PRIMARY KEY AUTOINCREMENT",
            clustered="WITHOUT ROWID",
        )
