"""What every part of SessionDB stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.engine import process_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_core.ids import MessageIds
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx
    from hermes_state.ledger.history import StoreHistory
    from hermes_state.messages.journal import Journal

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
        process_identity.register(tx, self.identity)
        self.engine.keep_present(self.identity)
