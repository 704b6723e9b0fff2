"""Facets of conversations: sources, models, tags and states, and families of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.repository import Repository
from hermes_state.sessions import lineage
from hermes_state.sessions.labels import TAG_COUNTS, TAG_TABLE
from hermes_state.sessions.pages import IS_TIP
from hermes_state.sessions.records import FamilyMember
from hermes_state.sessions.rows import EXISTS

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

# One pass over the listed rows counts sources, models and states.
GROUPS = """
    SELECT s.source, s.model, s.archived <> 0, count(*)
    FROM hermes_session_index i CROSS JOIN sessions s ON s.id = i.session_id
    WHERE i.shown = 1 GROUP BY 1, 2, 3
"""
COUNT_TRASH = f"""
    SELECT count(*) FROM hermes_session_index i CROSS JOIN sessions s ON s.id = i.session_id
    WHERE i.shown = 2 AND {IS_TIP}
"""  # noqa: S608 - constant text
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"
MEMBER = """
    SELECT s.id, coalesce(s.title, t.title), s.parent_session_id, s.started_at,
           coalesce(s.message_count, 0), i.kind, i.last_activity, coalesce(i.preview, ''),
           t.trashed_at
    FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    LEFT JOIN hermes_trash t ON t.session_id = s.id
    WHERE s.id = ?
"""
MAX_RELATIVES = 2000


class Facets(NamedTuple):
    """Number of conversations by name, largest first, and by state."""

    sources: dict[str, int]
    models: dict[str, int]
    tags: dict[str, int]
    active: int
    archived: int
    trash: int


def facets(reader: Reader) -> Facets:
    """Facets of listed conversations; sources and models of those not archived."""
    sources: dict[str, int] = {}
    models: dict[str, int] = {}
    by_state = [0, 0]
    for source, model, is_archived, number in reader.rows(GROUPS):
        by_state[is_archived] += number
        if not is_archived:
            sources[source] = sources.get(source, 0) + number
            if model:
                models[model] = models.get(model, 0) + number
    tags: dict[str, int] = (
        dict(reader.rows(TAG_COUNTS)) if TAG_TABLE in reader.columns.tables else {}
    )
    return Facets(
        sources=_by_count(sources),
        models=_by_count(models),
        tags=tags,
        active=by_state[0],
        archived=by_state[1],
        trash=int(reader.value(COUNT_TRASH)),
    )


def _by_count(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def root_ancestor(reader: Reader, session_id: str) -> str:
    """The oldest ancestor of a session."""
    seen = {session_id}
    current = session_id
    while (parent := reader.value(PARENT, (current,))) is not None and parent not in seen:
        if reader.value(EXISTS, (parent,)) is None:
            break
        seen.add(parent)
        current = parent
    return current


def family(reader: Reader, session_id: str) -> list[FamilyMember]:
    """All sessions with the same oldest ancestor, parents before children."""
    queue = [root_ancestor(reader, session_id)]
    rows: list[FamilyMember] = []
    seen: set[str] = set()
    while queue and len(rows) < MAX_RELATIVES:
        current = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        members = map(FamilyMember._make, reader.rows(MEMBER, (current,)))
        rows += [row._replace(kind=lineage.kind_of(reader, row.id)[0]) for row in members]
        queue += [row[0] for row in reader.rows(CHILDREN, (current,))]
    return rows


class FacetRepository(Repository):
    """Facets and families of conversations."""

    def facets(self) -> Facets:
        """Sources, models and tags of the listed conversations, and the number in each state."""
        return self.engine.read(facets)

    def family(self, session_id: str) -> list[FamilyMember]:
        """All sessions with the same root, parents before children.

        Branches, continuations, delegated tasks; rows in the trash have `trashed_at`.
        """
        return self.engine.read(lambda reader: family(reader, session_id))
