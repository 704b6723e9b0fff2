"""What the repositories of a store have in common, and its key-value notes."""

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


GET_META = "SELECT value FROM state_meta WHERE key = ?"
UPSERT_META = """
    INSERT INTO state_meta (key, value) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
DELETE_META = "DELETE FROM state_meta WHERE key = ?"


class MetaRepository(Repository):
    """Key-value notes."""

    def get_meta(self, key: str) -> str | None:
        """Value of a note, or None."""
        value: str | None = self.engine.read(lambda reader: reader.value(GET_META, (key,)))
        return value

    def set_meta(self, key: str, value: str) -> None:
        """Set a note."""
        self.engine.write(lambda tx: tx.run(UPSERT_META, (key, value)))

    def delete(self, key: str) -> None:
        """Delete a note."""
        self.engine.write(lambda tx: tx.run(DELETE_META, (key,)))
