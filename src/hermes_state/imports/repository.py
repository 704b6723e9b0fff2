"""What was imported from other agents, and how far."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from hermes_state.imports.identities import IS_USABLE, identities, known_rows
from hermes_state.imports.rows import SessionOrigin, UnitState
from hermes_state.repository import Repository
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Tx
    from hermes_state.imports.rows import ImportedPart, PartResult, StoredUnit

UNITS = "SELECT unit_id, revision, position, state, unknown FROM hermes_import_unit WHERE agent = ?"
SAVE_UNIT = """
    INSERT INTO hermes_import_unit (agent, unit_id, revision, position, state, unknown, read_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (agent, unit_id) DO UPDATE SET revision = excluded.revision,
        position = excluded.position, state = excluded.state, unknown = excluded.unknown,
        read_at = excluded.read_at
"""
SESSIONS = f"SELECT {', '.join(SessionOrigin._fields)} FROM hermes_imported_session"  # noqa: S608
COUNTS = "SELECT agent, count(*), max(imported_at) FROM hermes_imported_session GROUP BY agent"
# Conversations without a new record for some time, whose end is not announced yet.
IDLE_SESSIONS = """
    SELECT i.session_id, i.last_record_at FROM hermes_imported_session i
    JOIN sessions s ON s.id = i.session_id
    WHERE s.ended_at IS NULL AND i.last_record_at < ?
"""
HAS_PENDING = """
    SELECT 1 FROM hermes_session_extra WHERE name IN ('kept.parent', 'kept.inherited')
        OR (name >= 'kept.origin.' AND name < 'kept.origin/') LIMIT 1
"""
HAS_TABLE: Final = "hermes_imported_session"
ORIGINAL_AGENT: Final = "hermes-agent"


class ImportRepository(Repository):
    """Storing conversations of other agents."""

    def units(self, agent: str, unit_ids: Sequence[str] | None = None) -> dict[str, UnitState]:
        """How far the units of an agent were read: all of them, or some."""
        if HAS_TABLE not in self.engine.columns.tables:
            return {}
        if unit_ids is None:
            rows = self.engine.read(lambda reader: reader.rows(UNITS, (agent,)))
        else:
            rows = self.engine.read(
                lambda reader: [
                    row
                    for unit_id in unit_ids
                    for row in reader.rows(f"{UNITS} AND unit_id = ?", (agent, unit_id))
                ]
            )
        return {
            unit_id: UnitState(revision, position, json.loads(state), json.loads(unknown))
            for unit_id, revision, position, state, unknown in rows
        }

    def store(
        self,
        agent: str,
        parts: Sequence[tuple[str, ImportedPart, bool]],
        units: Sequence[StoredUnit] = (),
        *,
        run_started_at: float = math.inf,
    ) -> list[PartResult]:
        """Store parts of conversations in one transaction.

        Each part has the path that it was read from, and whether more of the conversation is
        expected soon. Messages that are stored already, here or in another conversation, are
        not stored or counted again. *units* are those that are completely read with them. A
        conversation that was first stored since *run_started_at* had ended before: its end is
        not announced.
        """

        from hermes_state.imports.part_storage import PartStorage  # noqa: PLC0415 - turns only read

        def store(tx: Tx) -> list[PartResult]:
            results = [
                PartStorage(tx, self.ids, agent, path, part).store(
                    is_live=is_live, run_started_at=run_started_at
                )
                for path, part, is_live in parts
            ]
            now = tx.clock.now()
            for unit_id, state in units:
                values = (state.revision, state.position, json.dumps(dict(state.state)))
                unknown = json.dumps(dict(state.unknown))
                tx.execute(SAVE_UNIT, (agent, unit_id, *values, unknown, now))
            return results

        return self.engine.write_upkeep(store)

    def unknown_messages(self, agent: str, keys: Sequence[str]) -> set[bytes]:
        """The identities of those of these records that are not stored yet."""
        uids = identities(agent, keys)
        known = self.engine.read(lambda reader: known_rows(reader, uids))
        return set(uids) - set(known)

    def is_deleted(self, session_id: str) -> bool:
        """Whether an imported conversation was deleted here."""
        return not self.engine.read(lambda reader: reader.value(IS_USABLE, (session_id,)))

    def link(self) -> int:
        """Link conversations whose parent was imported after them, and complete forks."""
        if not self.engine.read(lambda reader: reader.value(HAS_PENDING)):
            return 0
        from hermes_state.imports.inheritance import complete_forks  # noqa: PLC0415 - as above
        from hermes_state.portable.importer import link_pending  # noqa: PLC0415 - as above

        return self.engine.write_upkeep(lambda tx: link_pending(tx) + complete_forks(tx))

    def end_idle(self, before: float) -> list[str]:
        """End the conversations without a record since *before*; returns them."""

        from hermes_state.imports.part_storage import IDLE  # noqa: PLC0415 - as above

        def end(tx: Tx) -> list[str]:
            ended = []
            for session_id, at in tx.rows(IDLE_SESSIONS, (before,)):
                if sessions.end(tx, self.ids.new(), session_id, IDLE, ended_at=at):
                    ended.append(session_id)
            return ended

        if not self.engine.read(lambda reader: reader.row(IDLE_SESSIONS, (before,))):
            return []
        return self.engine.write(end)

    def all(self) -> list[SessionOrigin]:
        """Where every imported conversation came from."""
        rows = self.engine.read(lambda reader: reader.rows(SESSIONS))
        return [SessionOrigin._make(row) for row in rows]

    def of_session(self, session_id: str) -> SessionOrigin | None:
        """Where a conversation came from; None if it was not imported."""
        if HAS_TABLE not in self.engine.columns.tables:
            return None
        sql = f"{SESSIONS} WHERE session_id = ?"
        row = self.engine.read(lambda reader: reader.row(sql, (session_id,)))
        return SessionOrigin._make(row) if row else None

    def is_foreign(self, session_id: str) -> bool:
        """Whether a conversation belongs to another agent; those of hermes-agent do not."""
        imported = self.of_session(session_id)
        return imported is not None and imported.agent != ORIGINAL_AGENT

    def continue_here(self, session_id: str, source: str) -> str:
        """The conversation in which an imported one is continued: a new branch of it.

        Other conversations, and those of hermes-agent, are continued in place.
        """
        if not self.is_foreign(session_id):
            return session_id
        from hermes_state.messages.edits import EditRepository  # noqa: PLC0415 - as above

        return EditRepository(self.context).branch(session_id, source=source)

    def counts(self) -> dict[str, tuple[int, float]]:
        """Number of imported conversations by agent, and when the last one was imported."""
        rows = self.engine.read(lambda reader: reader.rows(COUNTS))
        return {agent: (count, at) for agent, count, at in rows}
