"""How often messages and replies were interrupted by the end of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

    Kind = Literal["inbox", "outbox"]

ADD = """
    INSERT INTO hermes_interruption (kind, number, count, noted_at) VALUES (?, ?, 1, ?)
    ON CONFLICT (kind, number)
    DO UPDATE SET count = hermes_interruption.count + 1, noted_at = excluded.noted_at
    RETURNING count
"""
FORGET = "DELETE FROM hermes_interruption WHERE kind = ? AND number = ?"
DELETE_OLD = "DELETE FROM hermes_interruption WHERE noted_at < ?"


def add(tx: Tx, kind: Kind, number: int) -> int:
    """Count an interruption; the number so far."""
    return int(tx.value(ADD, (kind, number, tx.clock.now())))


def forget(tx: Tx, kind: Kind, number: int) -> None:
    """Start the count of a message or reply again."""
    tx.execute(FORGET, (kind, number))


def delete_old(tx: Tx, before: float) -> None:
    """Delete the counts from before a time."""
    tx.execute(DELETE_OLD, (before,))
