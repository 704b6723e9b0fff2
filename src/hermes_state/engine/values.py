"""The values of a database column."""

from __future__ import annotations

SqlValue = str | bytes | int | float | None
