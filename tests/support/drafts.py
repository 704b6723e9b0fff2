"""What of an answer is stored while it still comes."""

from __future__ import annotations

from hermes_state import SessionDB

PIECES = "SELECT piece FROM hermes_draft ORDER BY uid, part"


def drafted(db: SessionDB | None = None) -> str:
    """The text of all drafts; empty when every answer is complete."""
    if db is None:
        with SessionDB(is_recovering=False) as own:
            return drafted(own)
    return "".join(str(row[0]) for row in db.engine.read(lambda reader: reader.rows(PIECES)))
