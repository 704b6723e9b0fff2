"""Tags and titles of conversations."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import SessionNotFoundError, TitleError, UsageError
from hermes_core.messages import has_lone_surrogate, sanitize_title
from hermes_state.engine.dialect import DIALECT, prefix_pattern
from hermes_state.ledger.repository import record_change
from hermes_state.messages.rows import decode_json
from hermes_state.repository import Repository
from hermes_state.sessions import lineage, rows
from hermes_state.sessions.rows import set_fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.sessions.records import SessionRow

TAG_TABLE: Final = "hermes_tag"
TAGS_EXPORT_NAME: Final = "tags"  # the name in an export
MAX_TAG_CHARACTERS: Final = 40
MAX_TAGS: Final = 50

EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
DELETE_TAGS = "DELETE FROM hermes_tag WHERE session_id = ?"
INSERT_TAG = "INSERT INTO hermes_tag (session_id, folded, tag) VALUES (?, ?, ?)"
# A tag has the same spelling in all conversations: the first one.
FIRST_SPELLING = "SELECT tag FROM hermes_tag WHERE folded = ? LIMIT 1"
TAGS_OF_ROOTS = """
    SELECT session_id, tag FROM hermes_tag
    WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY session_id, folded
"""
TAG_COUNTS = """
    SELECT min(t.tag), count(*) FROM hermes_tag t
    JOIN hermes_session_index i ON i.session_id = t.session_id AND i.shown < 2
    GROUP BY t.folded ORDER BY 2 DESC, t.folded
"""


def clean_tag(text: str) -> str:
    """*text* as a tag: one line of 1 to 40 characters; raises UsageError otherwise."""
    tag = " ".join(text.split())
    if not tag or not tag.isprintable() or has_lone_surrogate(tag):
        raise UsageError("a tag is one line of visible characters")
    if len(tag) > MAX_TAG_CHARACTERS:
        raise UsageError(f"a tag has at most {MAX_TAG_CHARACTERS} characters; '{tag}' is longer")
    return tag


def clean_tags(texts: Iterable[str]) -> dict[str, str]:
    """Tags by their case-folded form; the first spelling of each is kept."""
    tags: dict[str, str] = {}
    for text in texts:
        tag = clean_tag(text)
        tags.setdefault(tag.casefold(), tag)
    if len(tags) > MAX_TAGS:
        raise UsageError(f"a conversation has at most {MAX_TAGS} tags")
    return tags


def set_tags(tx: Tx, session_id: str, tags: dict[str, str]) -> list[str]:
    """Replace the tags of a conversation; returns them as they are spelled elsewhere."""
    if tx.value(EXISTS, (session_id,)) is None:
        raise SessionNotFoundError(f"session not found: {session_id}")
    root = lineage.position_of(tx, session_id).root_id
    tx.execute(DELETE_TAGS, (root,))
    spelled = {folded: tx.value(FIRST_SPELLING, (folded,)) or tag for folded, tag in tags.items()}
    tx.many(INSERT_TAG, [(root, folded, tag) for folded, tag in spelled.items()])
    return list(spelled.values())


def import_tags(tx: Tx, session_id: str, text: Any) -> None:
    """Store the valid tags of an imported conversation."""
    tags = decode_json(text)
    for item in tags if isinstance(tags, list) else ():
        with contextlib.suppress(UsageError):
            tag = clean_tag(str(item))
            tx.execute(f"{INSERT_TAG} ON CONFLICT DO NOTHING", (session_id, tag.casefold(), tag))


def tags_of(reader: Reader, root_ids: Sequence[str]) -> dict[str, list[str]]:
    """Tags of conversations by root ID; conversations without tags are omitted."""
    if TAG_TABLE not in reader.columns.tables:
        return {}
    by_root: dict[str, list[str]] = {}
    for root, tag in reader.rows(TAGS_OF_ROOTS, (json.dumps(list(root_ids)),)):
        by_root.setdefault(root, []).append(tag)
    return by_root


class TagRepository(Repository):
    """Tags of conversations."""

    def replace(self, session_id: str, tags: Iterable[str]) -> list[str]:
        """Set the tags of a conversation.

        Returns them as stored. A tag is one line of 1 to 40 visible characters; case is
        ignored in comparisons.
        """
        cleaned = clean_tags(tags)
        return self.engine.write(lambda tx: set_tags(tx, session_id, cleaned))

    def change(self, session_id: str, tag: str, is_on: bool = True) -> list[str]:
        """Add a tag to a conversation, or remove it; returns its tags."""
        changed = clean_tag(tag)

        def change(tx: Tx) -> list[str]:
            root = lineage.position_of(tx, session_id).root_id
            tags = {current.casefold(): current for current in tags_of(tx, [root]).get(root, [])}
            if is_on:
                tags.setdefault(changed.casefold(), changed)
            else:
                tags.pop(changed.casefold(), None)
            return set_tags(tx, session_id, clean_tags(tags.values()))

        return self.engine.write(change)

    def tags_of(self, session_ids: Iterable[str]) -> dict[str, list[str]]:
        """The tags of the conversations that these sessions belong to."""

        def read(reader: Reader) -> dict[str, list[str]]:
            roots = {
                session_id: lineage.position_of(reader, session_id).root_id
                for session_id in session_ids
            }
            by_root = tags_of(reader, list(set(roots.values())))
            return {session_id: by_root.get(root, []) for session_id, root in roots.items()}

        return self.engine.read(read)


USER: Final = "user"
TITLE_SOURCE_RANKS: Final = {"derived": 0, "llm": 1, USER: 2}

TITLE_OWNER = "SELECT id FROM sessions WHERE title = ? AND id <> ?"
SET_TITLE = "UPDATE sessions SET title = ? WHERE id = ?"
SELECT_TITLE = "SELECT title FROM sessions WHERE id = ?"
BY_TITLE = "SELECT id FROM sessions WHERE title = ?"
NUMBERED = f"SELECT id, title FROM sessions WHERE title = ? OR title {DIALECT.like} ? ESCAPE '\\'"  # noqa: S608 - own names


def set_title(tx: Tx, session_id: str, title: str | None, source: str) -> bool:
    """Set a session's title; False if there is no such session or its user chose the title."""
    clean = sanitize_title(title)
    row = rows.get(tx, session_id)
    if row is None:
        return False
    # A title of unknown origin may have been set by the user.
    current_rank = TITLE_SOURCE_RANKS.get(row.title_source or USER, 2) if row.title else -1
    if TITLE_SOURCE_RANKS.get(source, 0) < current_rank:
        return False
    if clean is not None and (owner := tx.value(TITLE_OWNER, (clean, session_id))):
        if lineage.tip_of(tx, owner) != lineage.tip_of(tx, session_id):
            raise TitleError(f"the title '{clean}' is taken by session {owner}")
        tx.execute(SET_TITLE, (None, owner))  # an earlier row of the same conversation
    tx.execute(SET_TITLE, (clean, session_id))
    record_change(tx, session_id)
    set_fact(tx, session_id, "title_source", source if clean else None)
    return True


def numbered(reader: Reader, title: str) -> list[tuple[int, str]]:
    """Sessions titled *title* or "*title* #N", by number."""
    base = re.sub(r" #\d+$", "", title)
    matches = []
    for session_id, name in reader.rows(NUMBERED, (base, prefix_pattern(f"{base} #"))):
        number = name[len(base) + 2 :]
        if name == base:
            matches.append((1, session_id))
        elif number.isdecimal():
            matches.append((int(number), session_id))
    return sorted(matches)


class TitleRepository(Repository):
    """Titles, and lookup of sessions by title."""

    def set_session_title(self, session_id: str, title: str | None, source: str = USER) -> bool:
        """Set the title of a session.

        A title set by the user is replaced only by the user. Raises TitleError (a
        ValueError) if the title is in use or too long. `source` is user, llm or derived.
        """
        return self.engine.write(lambda tx: set_title(tx, session_id, title, source))

    def get_session_title(self, session_id: str) -> str | None:
        """Title of a session."""
        title: str | None = self.engine.read(
            lambda reader: reader.value(SELECT_TITLE, (session_id,))
        )
        return title

    def find(self, title: str) -> SessionRow | None:
        """The session with exactly this title, or None."""

        def find(reader: Reader) -> SessionRow | None:
            session_id = reader.value(BY_TITLE, (title,))
            return None if session_id is None else rows.get(reader, session_id)

        return self.engine.read(find)

    def resolve_session_by_title(self, title: str) -> str | None:
        """The latest session with this title, including "title #2" and so on."""
        matches = self.engine.read(lambda reader: numbered(reader, title))
        return matches[-1][1] if matches else None

    def get_next_title_in_lineage(self, base_title: str) -> str:
        """The title for a session that continues this one."""
        base = re.sub(r" #\d+$", "", base_title)
        matches = self.engine.read(lambda reader: numbered(reader, base))
        return f"{base} #{matches[-1][0] + 1}" if matches else base

    def get_compression_tip(self, session_id: str) -> str:
        """The last row of the conversation that a session belongs to."""
        return self.engine.read(lambda reader: lineage.tip_of(reader, session_id))

    def resolve_resume_session_id(self, session_id: str) -> str:
        """The row to continue when a user resumes this session."""
        return self.get_compression_tip(session_id)
