"""Titles: unique, clean, and never taken from a user who chose one."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import SessionNotFoundError, TitleError, UsageError
from hermes_core.messages import has_lone_surrogate, sanitize_title
from hermes_state.engine.dialect import beginning_with
from hermes_state.ledger import part
from hermes_state.messages.rows import decode_json
from hermes_state.part import StorePart
from hermes_state.sessions import lineage, rows
from hermes_state.sessions.rows import set_fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.engine.transaction import Reader, Tx

TABLE: Final = "hermes_tag"
FACT: Final = "tags"  # what an export calls them
TAG_CHARACTERS: Final = 40
MAX_TAGS: Final = 50

EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
FORGET = "DELETE FROM hermes_tag WHERE session_id = ?"
INSERT_TAG = "INSERT INTO hermes_tag (session_id, folded, tag) VALUES (?, ?, ?)"
# A tag is written as it was written first, wherever it is.
SPELLED = "SELECT tag FROM hermes_tag WHERE folded = ? LIMIT 1"
OF = """
    SELECT session_id, tag FROM hermes_tag
    WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY session_id, folded
"""
COUNTS = """
    SELECT min(t.tag), count(*) FROM hermes_tag t
    JOIN hermes_session_index i ON i.session_id = t.session_id AND i.shown < 2
    GROUP BY t.folded ORDER BY 2 DESC, t.folded
"""


def clean_tag(text: str) -> str:
    """*text* as a tag: one line of 1 to 40 characters; UsageError if it cannot be one."""
    tag = " ".join(text.split())
    if not tag or not tag.isprintable() or has_lone_surrogate(tag):
        raise UsageError("a tag is one line of visible characters")
    if len(tag) > TAG_CHARACTERS:
        raise UsageError(f"a tag has at most {TAG_CHARACTERS} characters; '{tag}' is longer")
    return tag


def clean_tags(texts: Iterable[str]) -> dict[str, str]:
    """Tags by how they are compared; the first spelling of each stays."""
    found: dict[str, str] = {}
    for text in texts:
        tag = clean_tag(text)
        found.setdefault(tag.casefold(), tag)
    if len(found) > MAX_TAGS:
        raise UsageError(f"a conversation has at most {MAX_TAGS} tags")
    return found


def put_tags(tx: Tx, session_id: str, tags: dict[str, str]) -> list[str]:
    """Give a conversation these tags and no others; as they are spelled elsewhere."""
    if tx.value(EXISTS, (session_id,)) is None:
        raise SessionNotFoundError(f"session not found: {session_id}")
    root = lineage.place_of(tx, session_id).root_id
    tx.execute(FORGET, (root,))
    spelled = {one: tx.value(SPELLED, (one,)) or tag for one, tag in tags.items()}
    tx.many(INSERT_TAG, [(root, folded, tag) for folded, tag in spelled.items()])
    return list(spelled.values())


def take_in(tx: Tx, session_id: str, text: Any) -> None:
    """The tags of a conversation that is being imported, as far as they can be tags."""
    found = decode_json(text)
    for one in found if isinstance(found, list) else ():
        with contextlib.suppress(UsageError):
            tag = clean_tag(str(one))
            tx.execute(f"{INSERT_TAG} ON CONFLICT DO NOTHING", (session_id, tag.casefold(), tag))


def tags_of(reader: Reader, root_ids: Sequence[str]) -> dict[str, list[str]]:
    """The tags of conversations, by their first rows; those without any are left out."""
    if TABLE not in reader.columns.tables:
        return {}
    found: dict[str, list[str]] = {}
    for root, tag in reader.rows(OF, (json.dumps(list(root_ids)),)):
        found.setdefault(root, []).append(tag)
    return found


class TagPart(StorePart):
    """Tags of conversations."""

    def set_session_tags(self, session_id: str, tags: Iterable[str]) -> list[str]:
        """Give a conversation these tags and no others; how they are spelled.

        UsageError if one cannot be a tag: 1 to 40 visible characters on one line.
        """
        wanted = clean_tags(tags)
        return self.engine.write(lambda tx: put_tags(tx, session_id, wanted))

    def change_session_tag(self, session_id: str, tag: str, is_on: bool = True) -> list[str]:
        """Add one tag to a conversation, or take it away; the tags it has then."""
        word = clean_tag(tag)

        def change(tx: Tx) -> list[str]:
            root = lineage.place_of(tx, session_id).root_id
            tags = {one.casefold(): one for one in tags_of(tx, [root]).get(root, [])}
            if is_on:
                tags.setdefault(word.casefold(), word)
            else:
                tags.pop(word.casefold(), None)
            return put_tags(tx, session_id, clean_tags(tags.values()))

        return self.engine.write(change)

    def session_tags(self, session_ids: Iterable[str]) -> dict[str, list[str]]:
        """The tags of the conversations that these sessions belong to."""

        def look(reader: Reader) -> dict[str, list[str]]:
            roots = {one: lineage.place_of(reader, one).root_id for one in session_ids}
            found = tags_of(reader, list(set(roots.values())))
            return {one: found.get(root, []) for one, root in roots.items()}

        return self.engine.read(look)

    def tag_counts(self) -> dict[str, int]:
        """Every tag with how many conversations have it, the most used first."""
        if TABLE not in self.engine.columns.tables:
            return {}
        return dict(self.engine.read(lambda reader: reader.rows(COUNTS)))


USER: Final = "user"
RANKS: Final = {"derived": 0, "llm": 1, USER: 2}

TAKEN = "SELECT id FROM sessions WHERE title = ? AND id <> ?"
SET = "UPDATE sessions SET title = ? WHERE id = ?"
SELECT_TITLE = "SELECT title FROM sessions WHERE id = ?"
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
    part.mark(tx, session_id)
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
        title: str | None = self.engine.read(
            lambda reader: reader.value(SELECT_TITLE, (session_id,))
        )
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
