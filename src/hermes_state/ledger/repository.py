"""SessionDB methods for statistics: the history to read, the ledger to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.engine.dialect import DIALECT
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx
    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.history import StoreHistory
    from hermes_state.ledger.shared import SharedLedger

UPSERT_CHANGE: Final = f"""
    INSERT INTO hermes_change (session_id, sequence)
    VALUES (?, {DIALECT.new_change})
    ON CONFLICT (session_id) DO UPDATE SET sequence = excluded.sequence
"""  # noqa: S608 - own names
UPSERT_FACTS: Final = """
    INSERT INTO hermes_kept (session_id, facts, kept_at) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET facts = excluded.facts, kept_at = excluded.kept_at
"""
# Columns that affect a session's contribution to the statistics.
COUNTED_COLUMNS: Final = frozenset({"model", "title_source"})


def record_change(tx: Tx, session_id: str) -> None:
    """Record that a session was changed other than by new messages."""
    tx.execute(UPSERT_CHANGE, (session_id,))


def save_facts(tx: Tx, session_id: str, facts: bytes) -> None:
    """Store what a session adds to lifetime statistics, before its messages are deleted."""
    tx.execute(UPSERT_FACTS, (session_id, facts, tx.clock.now()))


class LedgerRepository(Repository):
    """Access for statistics."""

    def history(self) -> StoreHistory:
        """Read access for scanners: short transactions, few columns."""
        from hermes_state.ledger.history import StoreHistory  # noqa: PLC0415 - rarely needed

        return StoreHistory(self.engine)

    def open(self) -> LedgerFile | SharedLedger:
        """The ledger of this store; close it after use."""
        from hermes_state.ledger.factory import open_ledger  # noqa: PLC0415 - rarely needed

        return open_ledger(self.engine.path)
