"""The position in the mailbox: which messages are received, kept across restarts.

UIDs increase within one UIDVALIDITY. If the server changes that, e.g. after a restored backup, the
recent messages are read again; the inbox drops those that were received before, by message ID.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

REREAD_SECONDS: Final = 3 * 86400.0  # before the newest received message
CLOCK_TOLERANCE_SECONDS: Final = 86400.0  # between the clocks of senders and this one


class MailPosition(NamedTuple):
    """The last received message of a folder."""

    validity: int
    uid: int
    started_at: float  # the first start: older messages are never answered
    newest_at: float  # arrival of the newest received message
    reread_uid: int = 0  # up to this UID messages are read for the second time

    def is_reread(self, uid: int) -> bool:
        """Whether a message may have been received under an earlier UIDVALIDITY."""
        return uid <= self.reread_uid

    @property
    def reread_from(self) -> float:
        """From when on messages are read again."""
        return max(self.started_at, self.newest_at - REREAD_SECONDS)

    def is_too_old(self, sent_at: float | None) -> bool:
        """Whether a message that is read again was sent before the first start."""
        return sent_at is not None and sent_at < self.started_at - CLOCK_TOLERANCE_SECONDS

    def received(self, uid: int, at: float) -> MailPosition:
        """The position after a message."""
        return self._replace(uid=max(uid, self.uid), newest_at=max(at, self.newest_at))


class PositionStore:
    """The stored position of a folder."""

    def __init__(self, memory: Memory, account: str, folder: str) -> None:
        self._memory = memory
        self._name = f"position:{account}:{folder}"

    async def load(self) -> MailPosition | None:
        """The stored position; None before the first start."""
        text = await self._memory.recall(self._name)
        if text is None:
            return None
        stored = config_values.mapping(json.loads(text))
        return MailPosition(
            config_values.number(stored.get("validity"), 0),
            config_values.number(stored.get("uid"), 0),
            config_values.fraction(stored.get("started_at"), 0.0),
            config_values.fraction(stored.get("newest_at"), 0.0),
            config_values.number(stored.get("reread_uid"), 0),
        )

    async def save(self, position: MailPosition) -> None:
        """Store a position; when this returns, it is on disk."""
        await self._memory.keep(self._name, json.dumps(position._asdict()))
