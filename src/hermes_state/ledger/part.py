"""How statistics get at a store: its history to read, its ledger to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx
    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.history import StoreHistory

MARK: Final = """
    INSERT INTO hermes_change (session_id, sequence)
    VALUES (?, (SELECT coalesce(max(sequence), 0) + 1 FROM hermes_change))
    ON CONFLICT (session_id) DO UPDATE SET sequence = excluded.sequence
"""
KEEP: Final = """
    INSERT INTO hermes_kept (session_id, facts, kept_at) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET facts = excluded.facts, kept_at = excluded.kept_at
"""
# Facts of these change what a session adds.
TELLING: Final = frozenset({"model", "title_source"})


def mark(tx: Tx, session_id: str) -> None:
    """A session was changed: its row, or rows it already had."""
    tx.execute(MARK, (session_id,))


def keep(tx: Tx, session_id: str, facts: bytes) -> None:
    """Keep what a session adds to lifetime statistics, before its messages go."""
    tx.execute(KEEP, (session_id, facts, tx.clock.now()))


class LedgerPart(StorePart):
    """The doors for statistics."""

    def history(self) -> StoreHistory:
        """Read access for scanners: short transactions, few columns."""
        from hermes_state.ledger.history import StoreHistory  # noqa: PLC0415 - rarely needed

        return StoreHistory(self.engine)

    def ledger(self) -> LedgerFile:
        """The ledger file of this store; close it after use."""
        from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - rarely needed

        return LedgerFile(self.engine.path)
