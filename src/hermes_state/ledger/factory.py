"""Opens the ledger of a history: a file beside it, or tables of a shared database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.shared import SharedLedger


def open_ledger(path: Path) -> LedgerFile | SharedLedger:
    """The ledger of the history at *path*; close it after use."""
    if store_url(path):
        from hermes_state.engine.postgres.driver import require_driver  # noqa: PLC0415 - an extra

        require_driver()
        from hermes_state.ledger.shared import SharedLedger  # noqa: PLC0415 - an extra

        return SharedLedger(path)
    from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - needed for files only

    return LedgerFile(path)
