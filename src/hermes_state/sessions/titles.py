"""Titles: unique, clean, and never taken from a user who chose one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import TitleError
from hermes_core.messages import sanitize_title
from hermes_state.engine.like_patterns import beginning_with
from hermes_state.ledger import changes
from hermes_state.part import StorePart
from hermes_state.sessions import lineage, rows
from hermes_state.sessions.extra_columns import set_fact

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

USER: Final = "user"
RANKS: Final = {"derived": 0, "llm": 1, USER: 2}

TAKEN = "SELECT id FROM sessions WHERE title = ? AND id <> ?"
SET = "UPDATE sessions SET title = ? WHERE id = ?"
GET = "SELECT title FROM sessions WHERE id = ?"
BY_TITLE = "SELECT id FROM sessions WHERE title = ?"
NUMBERED = "SELECT id, title FROM sessions WHERE title = ? OR title LIKE ? ESCAPE '\\'"


def set_title(tx: Tx, session_id: str, title: str | None, source: str) -> bool:
    """Give a session a title; False if there is no such session or its user chose one."""
    clean = sanitize_title(title)
    row = rows.get(tx, session_id)
    if row is None:
        return False
    # A title of unknown origin may be the user's own.
    held = RANKS.get(row.get("title_source") or USER, 2) if row["title"] else -1
    if RANKS.get(source, 0) < held:
        return False
    if clean is not None and (taken := tx.value(TAKEN, (clean, session_id))):
        raise TitleError(f"the title '{clean}' is taken by session {taken}")
    tx.execute(SET, (clean, session_id))
    changes.mark(tx, session_id)
    set_fact(tx, session_id, "title_source", source if clean else None)
    return True


def numbered(reader: Reader, title: str) -> list[tuple[int, str]]:
    """The sessions named *title* or "*title* #N", by number."""
    base = re.sub(r" #\d+$", "", title)
    found = []
    for session_id, name in reader.rows(NUMBERED, (base, beginning_with(f"{base} #"))):
        number = name[len(base) + 2 :]
        if name == base:
            found.append((1, session_id))
        elif number.isdecimal():
            found.append((int(number), session_id))
    return sorted(found)


class TitlePart(StorePart):
    """Titles, and finding sessions by them."""

    sanitize_title = staticmethod(sanitize_title)

    def set_session_title(self, session_id: str, title: str | None, source: str = USER) -> bool:
        """Name a session; a name its user gave yields only to its user.

        TitleError (a ValueError) if the title is taken or too long. `source` is user,
        llm or derived.
        """
        return self.engine.write(lambda tx: set_title(tx, session_id, title, source))

    def get_session_title(self, session_id: str) -> str | None:
        """A session's title."""
        title: str | None = self.engine.read(lambda reader: reader.value(GET, (session_id,)))
        return title

    def get_session_by_title(self, title: str) -> dict[str, Any] | None:
        """The session with exactly that title."""

        def find(reader: Reader) -> dict[str, Any] | None:
            session_id = reader.value(BY_TITLE, (title,))
            return None if session_id is None else rows.get(reader, session_id)

        return self.engine.read(find)

    def resolve_session_by_title(self, title: str) -> str | None:
        """The latest session of that name, counting "name #2" and so on."""
        found = self.engine.read(lambda reader: numbered(reader, title))
        return found[-1][1] if found else None

    def get_next_title_in_lineage(self, title: str) -> str:
        """The name for a session that goes on under that title."""
        base = re.sub(r" #\d+$", "", title)
        found = self.engine.read(lambda reader: numbered(reader, base))
        return f"{base} #{found[-1][0] + 1}" if found else base

    def get_compression_tip(self, session_id: str) -> str:
        """The last row of the conversation a session belongs to."""
        return self.engine.read(lambda reader: lineage.tip_of(reader, session_id))

    def resolve_resume_session_id(self, session_id: str) -> str:
        """The row to go on with when somebody resumes that session."""
        return self.get_compression_tip(session_id)
