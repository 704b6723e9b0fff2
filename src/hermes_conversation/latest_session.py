"""Finds the most recent conversation of a folder, from any front end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB

PAGE_SIZE: Final = 100


def latest_session_in(db: SessionDB, folder: str) -> ListedSession | None:
    """Its row, or None; those of subfolders and of other agents do not count."""
    offset = 0
    while rows := db.lists.sessions(
        limit=PAGE_SIZE, offset=offset, order_by_last_active=True, cwd_prefix=folder
    ):
        for row in rows:
            if row.session.cwd == folder and db.imports.of_session(row.session.id) is None:
                return row
        offset += len(rows)
    return None
