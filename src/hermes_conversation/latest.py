"""Finds the most recent conversation of a folder, from any front end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hermes_state import SessionDB

PAGE_SIZE: Final = 100


def latest_session_in(db: SessionDB, folder: str) -> dict[str, Any] | None:
    """Its row, or None; conversations of subfolders do not count."""
    offset = 0
    while rows := db.list_sessions_rich(
        limit=PAGE_SIZE, offset=offset, order_by_last_active=True, cwd_prefix=folder
    ):
        result = next((row for row in rows if row.get("cwd") == folder), None)
        if result is not None:
            return result
        offset += len(rows)
    return None
