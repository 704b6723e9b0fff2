"""Pruning of old and empty sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.repository import Repository
from hermes_state.sessions.records import listed_columns, other_columns, to_session, with_extras
from hermes_state.sessions.rows import end
from hermes_state.sessions.trash import DAY_SECONDS

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader
    from hermes_state.repository import MetaRepository, StoreContext
    from hermes_state.sessions.records import SessionRow
    from hermes_state.sessions.trash import TrashRepository

FROM_CANDIDATES: Final = """
    FROM hermes_session_index i JOIN sessions s ON s.id = i.session_id
    WHERE (i.shown = 1 OR (i.shown = 0 AND s.parent_session_id IS NULL AND i.kind = 'delegate'))
    AND i.last_activity < ? ORDER BY i.last_activity
"""
IS_USED: Final = "EXISTS (SELECT 1 FROM hermes_participant p WHERE p.session_id = s.id)"
EMPTY: Final = """
    SELECT s.id FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    WHERE s.ended_at IS NOT NULL AND i.lifetime_messages = 0 AND i.shown < 2
    AND s.title IS NULL AND s.archived = 0 AND i.kind <> 'delegate'
"""
LAST_HOUSE_KEEPING: Final = "last_auto_prune"
GHOSTS: Final = """
    SELECT s.id FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    WHERE s.ended_at IS NULL AND i.lifetime_messages = 0 AND i.shown < 2 AND s.title IS NULL
    AND s.started_at < ?
    AND NOT EXISTS (SELECT 1 FROM hermes_participant p WHERE p.session_id = s.id)
"""
CONTINUED: Final = """
    SELECT s.id, i.last_activity FROM sessions s
    JOIN hermes_session_index i ON i.session_id = s.id
    WHERE s.ended_at IS NULL
    AND EXISTS (SELECT 1 FROM sessions c JOIN hermes_session_index ci ON ci.session_id = c.id
                WHERE c.parent_session_id = s.id AND ci.kind = 'child'
                AND c.started_at >= i.last_activity)
    AND NOT EXISTS (SELECT 1 FROM hermes_participant p WHERE p.session_id = s.id)
"""
IS_EMPTY: Final = """
    SELECT 1 FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    WHERE s.id = ? AND i.lifetime_messages = 0 AND s.title IS NULL
    AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)
"""


class PruneCandidate(NamedTuple):
    """A session without recent activity; one that is open may be in use."""

    session: SessionRow
    last_active: float
    preview: str
    is_used: bool


class PrunePlan(NamedTuple):
    """Sessions to be pruned, and old sessions that are kept, with the reason."""

    due: list[PruneCandidate]
    spared: list[tuple[PruneCandidate, str]]


class HouseKeeping(NamedTuple):
    """What was done to keep the history small."""

    is_skipped: bool = False
    pruned: int = 0
    purged: int = 0


def plan(reader: Reader, days: int, source: str | None, now: float) -> PrunePlan:
    """Apply the retention policy to every session without activity for *days*."""
    from hermes_core.policy import RetentionPolicy  # noqa: PLC0415 - slow to load, rarely needed

    policy = RetentionPolicy(days)
    result = PrunePlan([], [])
    for candidate in _candidates(reader, now - days * DAY_SECONDS):
        session = candidate.session
        if source is not None and session.source != source:
            continue
        verdict = policy.due(
            datetime.fromtimestamp(candidate.last_active, UTC),
            datetime.fromtimestamp(now, UTC),
            pinned=bool(session.pinned),
            # An open row without a participant was left by another program.
            ended=session.ended_at is not None or not candidate.is_used,
        )
        if verdict.is_due:
            result.due.append(candidate)
        else:
            result.spared.append((candidate, verdict.reason))
    return result


def _candidates(reader: Reader, before: float) -> list[PruneCandidate]:
    """Sessions without activity since *before*, oldest first."""
    names = reader.prepared(listed_columns)
    sql = f"SELECT {names}, i.last_activity, i.preview, {IS_USED} {FROM_CANDIDATES}"
    rows = reader.rows(sql, (before,))
    other_count = len(reader.prepared(other_columns))
    sessions = with_extras(reader, [to_session(row, other_count) for row in rows])
    return [
        PruneCandidate(session, last_active, preview or "", bool(is_used))
        for session, (*_, last_active, preview, is_used) in zip(sessions, rows, strict=True)
    ]


class RetentionRepository(Repository):
    """Moving old and empty sessions to the trash."""

    def __init__(self, context: StoreContext, trash: TrashRepository, meta: MetaRepository) -> None:
        super().__init__(context)
        self._trash, self._meta = trash, meta

    def plan(self, older_than_days: int, source: str | None = None) -> PrunePlan:
        """What `prune_sessions` would do now."""
        now = self.clock.now()
        return self.engine.read(lambda reader: plan(reader, older_than_days, source, now))

    def prune_sessions(
        self, /, older_than_days: int = 90, source: str | None = None, **_ignored: Any
    ) -> int:
        """Move sessions without activity for this time to the trash; returns their number."""
        due = self.plan(older_than_days, source).due
        return self._trash.delete_sessions([row.session.id for row in due], reason="pruned")

    def count_empty_sessions(self) -> int:
        """Number of ended sessions without messages."""
        return len(self.engine.read(lambda reader: reader.rows(EMPTY)))

    def delete_empty_sessions(self, sessions_dir: object = None) -> int:
        """Move sessions without messages to the trash."""
        rows = self.engine.read(lambda reader: reader.rows(EMPTY))
        return self._trash.delete_sessions([row[0] for row in rows], reason="empty")

    def delete_session_if_empty(self, session_id: str, sessions_dir: object = None) -> bool:
        """Move a session to the trash if it has no messages, no title and no children."""
        is_empty = self.engine.read(lambda reader: reader.value(IS_EMPTY, (session_id,)))
        return bool(is_empty) and self._trash.delete_session(session_id, reason="empty")

    def prune_empty_ghost_sessions(self, sessions_dir: object = None) -> int:
        """Move open rows without a participant and without messages to the trash."""
        before = self.clock.now() - DAY_SECONDS
        rows = self.engine.read(lambda reader: reader.rows(GHOSTS, (before,)))
        return self._trash.delete_sessions([row[0] for row in rows], reason="empty")

    def finalize_orphaned_compression_sessions(self) -> int:
        """End open rows whose conversation another program continued elsewhere.

        Returns their number.
        """
        rows = self.engine.read(lambda reader: reader.rows(CONTINUED))
        return sum(
            self.engine.write(
                lambda tx, session_id=session_id, at=at: end(  # type: ignore[misc]
                    tx, self.ids.new(), session_id, "orphaned_compression", ended_at=at
                )
            )
            for session_id, at in rows
        )

    def is_house_keeping_due(self) -> bool:
        """Whether a day has passed since old sessions were last purged from the trash."""
        try:
            last = float(self._meta.get_meta(LAST_HOUSE_KEEPING) or 0)
        except ValueError:  # not written by Hermes
            return True
        return not abs(self.clock.now() - last) < DAY_SECONDS  # also true for NaN

    def keep_house(self) -> HouseKeeping:
        """Once a day: purge old sessions from the trash, and prune if the setting is enabled."""
        if not self.is_house_keeping_due():
            return HouseKeeping(is_skipped=True)
        settings = self.engine.settings
        self._meta.set_meta(LAST_HOUSE_KEEPING, str(self.clock.now()))
        pruned = self.prune_sessions(settings.retention_days) if settings.retention_days else 0
        # Without a purge hook, the sessions' share of the statistics would be lost.
        is_due = settings.trash_days > 0 and self.context.purge_hook is not None
        purged = self._trash.purge_expired(settings.trash_days) if is_due else 0
        return HouseKeeping(pruned=pruned, purged=purged)
