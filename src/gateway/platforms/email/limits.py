"""Limits that stop an exchange of messages with a program that does not show that it is one."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.platforms.email.settings import EmailSettings

WINDOW_SECONDS: Final = 3600.0
MAX_SENDERS: Final = 1000


class MailLimits:
    """Counts the messages of each sender and thread.

    The time of a message is its arrival in the mailbox, so messages that were sent during a long
    downtime do not count as sent at once.
    """

    def __init__(self, settings: EmailSettings) -> None:
        self._per_hour = settings.messages_per_hour
        self._per_thread = settings.thread_messages
        self._arrivals: OrderedDict[str, deque[float]] = OrderedDict()

    def excess(self, sender: str, at: float, thread_messages: int) -> str:
        """Count a message; which limit it exceeds, or an empty text."""
        if self._per_thread and thread_messages > self._per_thread:
            return f"more than {self._per_thread} messages in one thread"
        arrivals = self._arrivals.setdefault(sender, deque())
        self._arrivals.move_to_end(sender)
        if len(self._arrivals) > MAX_SENDERS:
            self._arrivals.popitem(last=False)
        while arrivals and arrivals[0] <= at - WINDOW_SECONDS:
            arrivals.popleft()
        if self._per_hour and len(arrivals) >= self._per_hour:
            return f"more than {self._per_hour} messages of one sender in an hour"
        arrivals.append(at)
        return ""
