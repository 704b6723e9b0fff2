"""How statistics get at a store: its history to read, its ledger to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.history import StoreHistory


class LedgerPart(StorePart):
    """The doors for statistics."""

    def history(self) -> StoreHistory:
        """This store as a scanner reads it: in short transactions, few columns."""
        from hermes_state.ledger.history import StoreHistory  # noqa: PLC0415 - rarely needed

        return StoreHistory(self.engine)

    def ledger(self) -> LedgerFile:
        """The file of what scanners made of this store; close it after use."""
        from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - rarely needed

        return LedgerFile(self.engine.path)
