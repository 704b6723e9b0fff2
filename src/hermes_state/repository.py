"""What the repositories of a store have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.engine import process_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_core.ids import MessageIds
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx
    from hermes_state.ledger.history import StoreHistory

    # Returns what a session adds to lifetime statistics, before its rows are deleted.
    PurgeHook = Callable[[StoreHistory, str], bytes | None]


class StoreContext(NamedTuple):
    """An open file, and what its repositories need to write to it."""

    engine: Engine
    clock: Clock
    ids: MessageIds
    identity: ProcessIdentity
    purge_hook: PurgeHook | None = None


class Repository:
    """The operations on one kind of row.

    Methods are thin: each passes a function named for the change to the engine. These
    functions receive an open transaction, so that several changes can share one.
    """

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.engine, self.clock, self.ids, self.identity, _ = context

    def _register_process(self, tx: Tx) -> None:
        """Register this process before it claims or owns a row, and start its heartbeat."""
        process_identity.register(tx, self.identity)
        self.engine.start_heartbeat(self.identity)
