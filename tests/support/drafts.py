"""The stored draft of an answer while it is streamed."""

from __future__ import annotations

from hermes_state import SessionDB

DRAFT_QUERY = "SELECT piece FROM hermes_draft ORDER BY uid, part"


def draft_text(db: SessionDB | None = None) -> str:
    """The text of all drafts; empty when every answer is complete."""
    if db is None:
        with SessionDB(is_recovering=False) as own:
            return draft_text(own)
    return "".join(str(row[0]) for row in db.engine.read(lambda reader: reader.rows(DRAFT_QUERY)))
