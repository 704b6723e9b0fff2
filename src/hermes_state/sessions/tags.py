"""Tags: words a person puts on a conversation to find it again.

A conversation has tags, not a row of it: they are kept under the id of its first row, so
they stay when it is continued. Tags that differ only in case are the same tag.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.messages import has_lone_surrogate
from hermes_state.messages.codec import decode_json
from hermes_state.part import StorePart
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.engine.transaction import Reader, Tx

TABLE: Final = "hermes_tag"
FACT: Final = "tags"  # what an export calls them
TAG_CHARACTERS: Final = 40
MOST_TAGS: Final = 50

EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
FORGET = "DELETE FROM hermes_tag WHERE session_id = ?"
PUT = "INSERT INTO hermes_tag (session_id, folded, tag) VALUES (?, ?, ?)"
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
    if len(found) > MOST_TAGS:
        raise UsageError(f"a conversation has at most {MOST_TAGS} tags")
    return found


def put_tags(tx: Tx, session_id: str, tags: dict[str, str]) -> list[str]:
    """Give a conversation these tags and no others; as they are spelled elsewhere."""
    if tx.value(EXISTS, (session_id,)) is None:
        raise SessionNotFoundError(f"there is no session {session_id}")
    root = lineage.place_of(tx, session_id).root_id
    tx.execute(FORGET, (root,))
    spelled = {one: tx.value(SPELLED, (one,)) or tag for one, tag in tags.items()}
    tx.many(PUT, [(root, folded, tag) for folded, tag in spelled.items()])
    return list(spelled.values())


def take_in(tx: Tx, session_id: str, text: Any) -> None:
    """The tags of a conversation that is being imported, as far as they can be tags."""
    found = decode_json(text)
    for one in found if isinstance(found, list) else ():
        with contextlib.suppress(UsageError):
            tag = clean_tag(str(one))
            tx.execute(f"{PUT} ON CONFLICT DO NOTHING", (session_id, tag.casefold(), tag))


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
