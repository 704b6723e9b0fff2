"""Facets of conversations: sources, models, folders, tags and states; families of sessions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from hermes_state.engine.dialect import DIALECT
from hermes_state.repository import Repository
from hermes_state.sessions import lineage
from hermes_state.sessions.labels import TAG_COUNTS, TAG_TABLE
from hermes_state.sessions.page_filter import IS_TIP
from hermes_state.sessions.records import FamilyMember
from hermes_state.sessions.rows import EXISTS

if TYPE_CHECKING:
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader
    from hermes_state.repository import StoreContext

# One pass over the listed rows counts sources, models, folders, branches and states.
GROUPS = f"""
    SELECT s.source, s.model, s.archived <> 0, {{folder}}, {{branch}}, count(*)
    FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id
    WHERE i.shown = 1 GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - own names
MAX_FOLDERS = 200
COUNT_TRASH = f"""
    SELECT count(*)
    FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id
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
    folders: dict[str, int]  # of the repository, else the working folder
    branches: dict[str, int]
    active: int
    archived: int
    trash: int


def groups_sql(columns: Columns) -> str:
    """The SELECT statement of the groups; old files have no columns for repositories."""
    root = "nullif(s.git_repo_root, ''), " if columns.session_has("git_repo_root") else ""
    branch = "s.git_branch" if columns.session_has("git_branch") else "NULL"
    return GROUPS.format(folder=f"coalesce({root}s.cwd, '')", branch=branch)


def facets(reader: Reader) -> Facets:
    """Facets of listed conversations; names of those that are not archived."""
    sources: Counter[str] = Counter()
    models: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    branches: Counter[str] = Counter()
    by_state = [0, 0]
    for source, model, is_archived, folder, branch, number in reader.rows(
        reader.prepared(groups_sql)
    ):
        by_state[is_archived] += number
        if not is_archived:
            sources[source] += number
            for counter, name in ((models, model), (folders, folder), (branches, branch)):
                if name:
                    counter[name] += number
    tags: dict[str, int] = (
        dict(reader.rows(TAG_COUNTS)) if TAG_TABLE in reader.columns.tables else {}
    )
    return Facets(
        sources=_by_count(sources),
        models=_by_count(models),
        tags=tags,
        folders=_by_count(folders, MAX_FOLDERS),
        branches=_by_count(branches, MAX_FOLDERS),
        active=by_state[0],
        archived=by_state[1],
        trash=int(reader.value(COUNT_TRASH)),
    )


def _by_count(counts: Counter[str], limit: int | None = None) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


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

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self._latest: tuple[int, Facets] | None = None  # with the version of the history

    def facets(self) -> Facets:
        """Values to filter the listed conversations by, and the number in each state.

        Sources, models, tags, folders and branches, with their numbers of conversations.
        """
        version = self.engine.version()
        if self._latest is None or self._latest[0] != version:
            self._latest = version, self.engine.read(facets)
        return self._latest[1]

    def family(self, session_id: str) -> list[FamilyMember]:
        """All sessions with the same root, parents before children.

        Branches, continuations, delegated tasks; rows in the trash have `trashed_at`.
        """
        return self.engine.read(lambda reader: family(reader, session_id))
