"""Title and archive state of a conversation in its agent, which are followed here.

What the agent said last is stored. A change there is applied here unless the user has changed
the same thing here: a title that is not the one of the import stays.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from hermes_state.ledger.repository import record_change
from hermes_state.messages.rows import to_utf8_text
from hermes_state.portable.import_extras import LABELS_NAME, save_json
from hermes_state.sessions import trash
from hermes_state.sessions.rows import archive

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx
    from hermes_state.imports.rows import ImportedConversation

NUMBERED_TITLES = "SELECT count(*) FROM sessions WHERE title >= ? AND title < ?"
SET_TITLE = "UPDATE sessions SET title = ? WHERE id = ?"
CURRENT = "SELECT title, coalesce(archived, 0) FROM sessions WHERE id = ?"
STORED = "SELECT value FROM hermes_session_extra WHERE session_id = ? AND name = ?"


class SourceLabels(NamedTuple):
    """What the agent said last, and the title that was made of it here."""

    title: str | None
    title_here: str | None
    is_archived: bool


def follow_labels(tx: Tx, session_id: str, about: ImportedConversation) -> None:
    """Apply the title and the archive state of an imported conversation, if they have changed."""
    title_here, is_archived_here = tx.row(CURRENT, (session_id,)) or (None, 0)
    stored = tx.value(STORED, (session_id, LABELS_NAME))
    title = to_utf8_text(about.title)
    if stored is None and not title and not about.is_archived:
        return
    before = SourceLabels(*json.loads(stored)) if stored else SourceLabels(None, None, False)
    shown = before.title_here
    if title and title != before.title and title_here == before.title_here:
        shown = _free_title(tx, title)
        tx.execute(SET_TITLE, (shown, session_id))
        if title_here is not None:
            record_change(tx, session_id)
    if about.is_archived != before.is_archived and bool(is_archived_here) == before.is_archived:
        archive(tx, session_id, about.is_archived)
    after = SourceLabels(title or before.title, shown, about.is_archived)
    if after != before:
        save_json(tx, session_id, LABELS_NAME, list(after))


def _free_title(tx: Tx, title: str) -> str:
    """The title, with a number if another conversation has it."""
    name = title
    if tx.value(trash.TITLE_TAKEN, (name,)):
        number = 2 + tx.value(NUMBERED_TITLES, (f"{title} #", f"{title} $"))
        while tx.value(trash.TITLE_TAKEN, (name,)):
            name, number = f"{title} #{number}", number + 1
    return name
