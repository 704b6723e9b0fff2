"""IDs of conversations, and durable identities of messages and events.

A message or event ID has 128 bits in the layout of UUID version 7: 48 bits of
milliseconds, a counter, and random bits. It sorts by time, needs no coordination between
processes, and is written as 32 lowercase hexadecimal characters.

Rows written by hermes-agent have no such identity; theirs is the row number, written as
`row-<n>`.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from typing import TYPE_CHECKING

from hermes_core.errors import IdFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock

    Entropy = Callable[[int], bytes]

UID_CHARACTERS = 32
SESSION_ID = r"[0-9]{8}_[0-9]{6}_[0-9a-f]{6}"

_FOREIGN_PREFIX = "row-"
_HEX_DIGITS = frozenset("0123456789abcdef")
_VERSION = 7 << 76
_VARIANT = 2 << 62
_RANDOM_BYTES = 6
_LOW_18_BITS = (1 << 18) - 1
_LOW_12_BITS = (1 << 12) - 1
_LOW_44_BITS = (1 << 44) - 1


def new_session_id(clock: Clock, entropy: Entropy = os.urandom) -> str:
    """An ID for a conversation in the terminal: local date and time, 6 hex digits."""
    return _session_id(clock, entropy(3))


def is_session_id(text: str) -> bool:
    """Whether a text has the format of an ID of a conversation in the terminal."""
    return re.fullmatch(SESSION_ID, text) is not None


def new_gateway_session_id(clock: Clock, entropy: Entropy = os.urandom) -> str:
    """An ID for a conversation in a chat app: local date and time, 8 hex digits."""
    return _session_id(clock, entropy(4))


def _session_id(clock: Clock, tail: bytes) -> str:
    return f"{time.strftime('%Y%m%d_%H%M%S', time.localtime(clock.now()))}_{tail.hex()}"


class MessageIds:
    """Creates IDs that sort in the order of their creation within a process.

    The counter fills the 30 bits after the milliseconds and is never reset, so IDs of the
    same millisecond keep their order; IDs do not decrease when the clock is set back.
    Threads share an object without a lock: `next` on `itertools.count` is atomic, which
    also makes it safe in a signal handler. The other 44 bits are random, so a forked
    child that inherits the counter creates different IDs.
    """

    __slots__ = ("_counter", "_entropy", "_latest_milliseconds", "_now")

    def __init__(self, clock: Clock, entropy: Entropy = os.urandom) -> None:
        self._now = clock.now
        self._entropy = entropy
        self._counter = itertools.count(int.from_bytes(entropy(4), "big") >> 3)
        self._latest_milliseconds = 0

    def new(self) -> str:
        """The next ID."""
        milliseconds = int(self._now() * 1000)
        if milliseconds > self._latest_milliseconds:
            self._latest_milliseconds = milliseconds
        else:
            milliseconds = self._latest_milliseconds
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
    """The 16 bytes of an ID, for compact storage."""
    if len(uid) != UID_CHARACTERS or not _HEX_DIGITS.issuperset(uid):
        raise IdFormatError(f"{uid!r} is not an id: 32 lowercase hexadecimal characters.")
    return bytes.fromhex(uid)


def foreign_row_id(uid: str) -> int | None:
    """The row number in an identity of the form `row-<n>`; None for any other text."""
    if not uid.startswith(_FOREIGN_PREFIX):
        return None
    digits = uid[len(_FOREIGN_PREFIX) :]
    try:
        row_id = int(digits)
    except ValueError:
        return None
    return row_id if str(row_id) == digits else None
