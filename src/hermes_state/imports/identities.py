"""Identities of other agents' records, and the messages that are stored for them."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.engine.transaction import Reader

LOOKUP_ROWS: Final = 200

KNOWN_ROWS = """
    SELECT h.uid, h.message_id, m.session_id FROM hermes_message h
    LEFT JOIN messages m ON m.id = h.message_id WHERE h.uid IN ({places})
"""
IS_USABLE = """
    SELECT NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = s.id)
    FROM sessions s WHERE s.id = ?
"""


class KnownMessage(NamedTuple):
    """A message that is stored already, or was: that of a purged conversation has none."""

    row_id: int
    session_id: str | None


def identity(agent: str, key: str) -> bytes:
    """The identity of a record of another agent, as messages of the history have it."""
    return identities(agent, [key])[0]


def identities(agent: str, keys: Iterable[str]) -> list[bytes]:
    """The identities of several records."""
    prefix, digest_of = f"{agent}:".encode("utf-8", "surrogatepass"), hashlib.blake2b
    return [
        digest_of(prefix + key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for key in keys
    ]


def session_id_of(agent: str, native_id: str) -> str:
    """The ID that a conversation of another agent has here."""
    return f"{agent}-{native_id}"


@functools.cache
def _known_rows_sql(count: int) -> str:
    return KNOWN_ROWS.format(places=", ".join("?" * count))


def known_rows(tx: Reader, keys: Sequence[bytes]) -> dict[bytes, KnownMessage]:
    """The stored messages among those with these identities."""
    found: dict[bytes, KnownMessage] = {}
    for start in range(0, len(keys), LOOKUP_ROWS):
        some = keys[start : start + LOOKUP_ROWS]
        for uid, row_id, session_id in tx.rows(_known_rows_sql(len(some)), some):
            found[bytes(uid)] = KnownMessage(row_id, session_id)
    return found
