"""SQL text that depends on the database: parts of statements, types, LIKE patterns."""

from __future__ import annotations

from typing import Final, NamedTuple


class Dialect(NamedTuple):
    """Parts of statements that mean the same with another text on each database.

    A change of a session has a number. On PostgreSQL it is that of its transaction, and a lower
    one may be committed later.
    """

    skip_locked: str  # at the end of a SELECT: without rows that another transaction claims
    new_change: str  # the number of a change that is stored now
    newest_change: str  # all changes up to it are committed, or never will be
    next_change: str  # no change from it on has begun
    changes_after: str  # `hermes_change` and a condition; the number follows
    like: str  # as LIKE, ignoring case
    unindexed: str  # before a column, so that its index is not used
    not_indexed: str  # after a table, so that no index is used
    join_in_order: str  # a JOIN that reads the left table first


# Statements are written with the members of this one; PostgreSQL's replace their texts, which
# their comments distinguish from everything else.
DIALECT: Final = Dialect(
    skip_locked="/* skip locked */",
    new_change="(SELECT coalesce(max(sequence), 0) + 1 FROM hermes_change /* new */)",
    newest_change="(SELECT max(sequence) FROM hermes_change /* newest */)",
    next_change="(SELECT max(sequence) + 1 FROM hermes_change /* next */)",
    changes_after="hermes_change WHERE /* after */ sequence >",
    like="LIKE /* any case */",
    unindexed="/* unindexed */ +",
    not_indexed="/* not */ NOT INDEXED",
    join_in_order="/* in order */ CROSS JOIN",
)


def escape_like(text: str) -> str:
    """*text* with LIKE's special characters escaped."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def prefix_pattern(text: str) -> str:
    """A LIKE pattern for texts that start with *text*."""
    return escape_like(text) + "%"


def substring_pattern(text: str) -> str:
    """A LIKE pattern for texts that contain *text*."""
    return "%" + escape_like(text) + "%"


def sqlite_table(template: str) -> str:
    """The CREATE statement for a template of `schema.own`."""
    return template.format(
        blob="BLOB", identity="INTEGER PRIMARY KEY AUTOINCREMENT", clustered="WITHOUT ROWID"
    )
