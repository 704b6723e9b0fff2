"""Base class of the SessionDB mixins."""

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

    # Returns what a session adds to lifetime statistics, before its rows are deleted.
    PurgeHook = Callable[[StoreHistory, str], bytes | None]


class StorePart:
    """A mixin of SessionDB with the operations of one noun.

    Methods are thin: each passes a function named for the change to the engine. These
    functions receive an open transaction, so that several changes can share one.
    """

    engine: Engine
    clock: Clock
    ids: MessageIds
    journal: Journal
    identity: ProcessIdentity
    purge_hook: PurgeHook | None

    def _register_process(self, tx: Tx) -> None:
        """Register this process before it claims or owns a row, and start its heartbeat."""
        process_identity.register(tx, self.identity)
        self.engine.start_heartbeat(self.identity)
