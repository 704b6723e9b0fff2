"""The filter of a paged list, as SQL and for rows in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.dialect import DIALECT, prefix_pattern, substring_pattern
from hermes_state.sessions import index
from hermes_state.sessions.labels import TAG_TABLE
from hermes_state.sessions.lists import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Reader
    from hermes_state.engine.values import SqlValue
    from hermes_state.sessions.records import ListedSession

ACTIVE: Final = "active"
ARCHIVED: Final = "archived"
TRASH: Final = "trash"
KEPT: Final = "kept"
ALL_STATES: Final = "all"

# The trash contains all rows of a conversation; the last one represents it.
IS_TIP = """
    i.kind IN ('root', 'branch', 'reset', 'continuation') AND NOT EXISTS (
        SELECT 1 FROM sessions c JOIN hermes_session_index ci ON ci.session_id = c.id
        WHERE c.parent_session_id = s.id AND ci.kind = 'continuation')
"""
IS_IN_CONVERSATIONS = """
    i.root_id IN (SELECT root_id FROM hermes_session_index
                  WHERE session_id IN (SELECT value FROM json_each(?)))
"""
HAS_TAGS = """
    i.root_id IN (SELECT session_id FROM hermes_tag
                  WHERE folded IN (SELECT value FROM json_each(?))
                  GROUP BY session_id HAVING count(*) = ?)
"""
DURATION = """
    (i.last_activity - coalesce(
        nullif((SELECT r.started_at FROM sessions r WHERE r.id = i.root_id), 0), s.started_at))
"""
IS_PINNED = "s.pinned <> 0"
IS_PINNED_EXTRA = """
    s.id IN (SELECT session_id FROM hermes_session_extra
             WHERE name = 'pinned' AND CAST(value AS INTEGER) <> 0)
"""
HAS_BRANCH = "s.git_branch = ?"
HAS_BRANCH_EXTRA = """
    s.id IN (SELECT session_id FROM hermes_session_extra WHERE name = 'git_branch' AND value = ?)
"""


class SessionPageFilter(NamedTuple):
    """Filter of a page; unset fields match everything.

    `state` is active, archived, kept (both of these), trash or all. `ids` identify
    conversations by any of their rows; with `children`, rows that are not listed on their
    own are included, and `ids` are row IDs. The duration of a conversation, from the start
    of its first row to its last activity, is at least `min_seconds` and less than
    `max_seconds`.
    """

    state: str = ACTIVE
    sources: tuple[str, ...] = ()
    model: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    is_pinned: bool | None = None
    folder: str | None = None
    branch: str | None = None
    since: float | None = None
    until: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    ids: frozenset[str] | None = None
    children: bool = False

    @property
    def shown(self) -> tuple[int, ...]:
        """The values of `shown` in the index that match."""
        listed = (index.UNLISTED, index.LISTED) if self.children else (index.LISTED,)
        if self.state == TRASH:
            return (index.TRASHED,)
        return (*listed, index.TRASHED) if self.state == ALL_STATES else listed

    @property
    def session_filter(self) -> SessionFilter:
        """The equivalent filter of unpaged lists, as far as it exists."""
        return SessionFilter(
            sources=self.sources,
            cwd_prefix=self.folder,
            min_message_count=self.min_messages or 0,
            include_children=self.children,
            include_archived=self.state in (KEPT, ALL_STATES),
            archived_only=self.state == ARCHIVED,
            trashed_only=self.state == TRASH,
            model=self.model,
            active_since=self.since,
            active_until=self.until,
        )

    def conditions(self, reader: Reader, shown: int) -> tuple[str, list[SqlValue]]:
        """The WHERE clause for a value of `shown`, over `sessions s` and the index `i`."""
        folder = "" if self.folder is None else self.folder.rstrip("/")
        clauses: list[tuple[bool, str, tuple[SqlValue, ...]]] = [
            (True, "i.shown = ?", (shown,)),
            (shown != index.TRASHED and self.state == ACTIVE, "s.archived = 0", ()),
            (shown != index.TRASHED and self.state == ARCHIVED, "s.archived <> 0", ()),
            (shown == index.TRASHED and not self.children, IS_TIP, ()),
            (self.since is not None, "i.last_activity >= ?", (self.since,)),
            (self.until is not None, "i.last_activity < ?", (self.until,)),
            (bool(self.sources), "s.source IN (SELECT value FROM json_each(?))",
             (json.dumps(self.sources),)),
            (self.model is not None, "instr(lower(s.model), lower(?)) > 0", (self.model,)),
            (self.name is not None, f"s.title {DIALECT.like} ? ESCAPE '\\'",
             (substring_pattern(self.name or ""),)),
            (self.folder is not None, f"(s.cwd = ? OR s.cwd {DIALECT.like} ? ESCAPE '\\')",
             (folder, prefix_pattern(f"{folder}/"))),
            (self.min_messages is not None, "s.message_count >= ?", (self.min_messages,)),
            (self.max_messages is not None, "s.message_count <= ?", (self.max_messages,)),
            (self.min_seconds is not None, f"{DURATION} >= ?", (self.min_seconds,)),
            (self.max_seconds is not None, f"{DURATION} < ?", (self.max_seconds,)),
        ]  # fmt: skip
        clauses += self._set_clauses(reader)
        active = [(sql, values) for is_set, sql, values in clauses if is_set]
        return " AND ".join(sql for sql, _ in active), [v for _, values in active for v in values]

    def _set_clauses(self, reader: Reader) -> list[tuple[bool, str, tuple[SqlValue, ...]]]:
        pinned = IS_PINNED if reader.columns.session_has("pinned") else IS_PINNED_EXTRA
        folded = sorted({tag.casefold() for tag in self.tags})
        has_tags = HAS_TAGS if TAG_TABLE in reader.columns.tables else "0 AND ? <> ?"
        by_id = (
            "i.session_id IN (SELECT value FROM json_each(?))"
            if self.children
            else IS_IN_CONVERSATIONS
        )
        has_branch = HAS_BRANCH if reader.columns.session_has("git_branch") else HAS_BRANCH_EXTRA
        return [
            (self.branch is not None, has_branch, (self.branch,)),
            (self.is_pinned is True, pinned, ()),
            (self.is_pinned is False, f"NOT ({pinned})", ()),
            (bool(folded), has_tags, (json.dumps(folded), len(folded))),
            (self.ids is not None, by_id, (json.dumps(sorted(self.ids or ())),)),
        ]

    def matches(self, row: ListedSession, tags: Sequence[str]) -> bool:
        """The conditions beyond `session_filter`, for a row that is not indexed."""
        session = row.session
        max_messages = self.max_messages
        duration = row.last_active - session.started_at
        return (
            (self.name is None or self.name.lower() in (session.title or "").lower())
            and (self.is_pinned is None or bool(session.pinned) == self.is_pinned)
            and self.branch in (None, session.git_branch)
            and (max_messages is None or session.message_count <= max_messages)
            and (self.min_seconds is None or duration >= self.min_seconds)
            and (self.max_seconds is None or duration < self.max_seconds)
            and {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in tags}
            and (self.ids is None or session.id in self.ids or row.root_id in self.ids)
        )
