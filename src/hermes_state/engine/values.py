"""The values of a database column.

SQLite keeps values of any type in any column, and another program may write to the same file.
"""

from __future__ import annotations

from typing import Final

SqlValue = str | bytes | int | float | None

MAX_NUMBER: Final = 2**53  # the largest integer that is exact as a float


def number_sql(expression: str) -> str:
    """An expression for a count, an amount or a time; NULL for what is not one.

    Text and blobs are greater than all numbers.
    """
    return f"CASE WHEN {expression} BETWEEN 0 AND {MAX_NUMBER} THEN {expression} END"


def amount_sql(expression: str) -> str:
    """Like `number_sql`, with 0 for what is not a number."""
    return f"coalesce({number_sql(expression)}, 0)"


def amount_of(value: SqlValue) -> float:
    """Like `amount_sql`, for a value that was read."""
    if isinstance(value, (int, float)) and 0 <= value <= MAX_NUMBER:
        return value
    return 0.0


def text_of(value: SqlValue) -> str:
    """A value of a column with text as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)
