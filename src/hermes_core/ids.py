"""Names of conversations, and durable identities of messages and events.

A message or event id is 128 bits in the layout of UUID version 7: 48 bits of
milliseconds, a counter, and randomness. It sorts by time, is made without asking
anybody, and reads as 32 lowercase hexadecimal characters.

Rows written by the original program have no identity of ours; theirs is their row
number, written `row-<n>`.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

from hermes_core.errors import IdFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock

    Entropy = Callable[[int], bytes]

UID_BYTES = 16
UID_CHARACTERS = 32

_FOREIGN = "row-"
_HEX = frozenset("0123456789abcdef")
_VERSION = 7 << 76
_VARIANT = 2 << 62
_RANDOM_BYTES = 6
_LOW_18_BITS = (1 << 18) - 1
_LOW_12_BITS = (1 << 12) - 1
_LOW_44_BITS = (1 << 44) - 1


def new_session_id(clock: Clock, entropy: Entropy = os.urandom) -> str:
    """An id for a conversation in the terminal: local date and time, 6 hex digits."""
    return _session_id(clock, entropy(3))


def new_gateway_session_id(clock: Clock, entropy: Entropy = os.urandom) -> str:
    """An id for a conversation in a chat app: local date and time, 8 hex digits."""
    return _session_id(clock, entropy(4))


def _session_id(clock: Clock, tail: bytes) -> str:
    return f"{time.strftime('%Y%m%d_%H%M%S', time.localtime(clock.now()))}_{tail.hex()}"


class MessageIds:
    """Makes ids that sort in the order in which this process made them.

    The counter fills the 30 bits behind the milliseconds and never starts again, so
    ids of one millisecond keep their order; a clock that is set back does not take
    the ids back with it. Threads share one object without a lock: taking the next
    number from `itertools.count` is atomic, which also makes it safe in a signal
    handler. The other 44 bits are random, so a forked child that inherits the
    counter makes ids of its own.
    """

    __slots__ = ("_counter", "_entropy", "_now", "_reached")

    def __init__(self, clock: Clock, entropy: Entropy = os.urandom) -> None:
        self._now = clock.now
        self._entropy = entropy
        self._counter = itertools.count(int.from_bytes(entropy(4), "big") >> 3)
        self._reached = 0

    def new(self) -> str:
        """The next id."""
        milliseconds = int(self._now() * 1000)
        if milliseconds > self._reached:
            self._reached = milliseconds
        else:
            milliseconds = self._reached
        number = next(self._counter)
        value = (
            (milliseconds << 80)
            | _VERSION
            | ((number >> 18 & _LOW_12_BITS) << 64)
            | _VARIANT
            | ((number & _LOW_18_BITS) << 44)
            | (int.from_bytes(self._entropy(_RANDOM_BYTES), "big") & _LOW_44_BITS)
        )
        return f"{value:032x}"


def uid_bytes(uid: str) -> bytes:
    """The 16 bytes of an id, for compact storage."""
    if len(uid) != UID_CHARACTERS or not _HEX.issuperset(uid):
        raise IdFormatError(f"{uid!r} is not an id: 32 lowercase hexadecimal characters.")
    return bytes.fromhex(uid)


def foreign_row_id(uid: str) -> int | None:
    """The row number in a foreign identity; None for any other text."""
    if not uid.startswith(_FOREIGN):
        return None
    digits = uid[len(_FOREIGN) :]
    try:
        row_id = int(digits)
    except ValueError:
        return None
    return row_id if str(row_id) == digits else None
