"""What every part of SessionDB stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state import processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_core.ids import MessageIds
    from hermes_state.engine import Engine
    from hermes_state.journal import Journal
    from hermes_state.ledger.reading import StoreHistory
    from hermes_state.processes import ProcessIdentity
    from hermes_state.transaction import Tx

    # Takes down what a session adds to lifetime statistics, before its rows are removed.
    Keeper = Callable[[StoreHistory, str], bytes | None]


class StorePart:
    """One noun's operations; SessionDB is the sum of them.

    Methods here are thin: each hands a function named for the change to the engine.
    The functions take an open transaction, so that several changes can share one.
    """

    engine: Engine
    clock: Clock
    ids: MessageIds
    journal: Journal
    identity: ProcessIdentity
    keeper: Keeper | None

    def present(self, tx: Tx) -> None:
        """Register this process, because it is about to hold something; and stay registered."""
        processes.register(tx, self.identity)
        self.engine.keep_present(self.identity)
