"""Lines as message events: who has written, where, and whether to the agent.

The identity of a person is the services account, which the server adds to each line (account-tag).
A nick is not one: as soon as its user has left, others can take it. Without an account the
event has no user ID, so that no entry of an allow list fits and pairing is not offered.
"""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource

from .lines import without_formatting
from .settings import CHANNEL

if TYPE_CHECKING:
    from collections.abc import Collection

    from .lines import IrcLine

GUEST_PREFIX: Final = "~"  # of a chat with a nick without an account; not possible in a nick
ACTION: Final = "\x01ACTION "


class IrcMessageReader:
    """Converts the messages of one network."""

    def __init__(self, *, trust_nicks: bool) -> None:
        self._trust_nicks = trust_nicks

    def read(self, line: IrcLine, message_id: str, nicks: Collection[str]) -> MessageEvent | None:
        """The event of a PRIVMSG; None for one without text and for one of another bot.

        *nicks* are those of the agent.
        """
        if "bot" in line.tags:
            return None
        target, text = line.params
        text = _plain_text(text)
        source = self._source(line, target)
        is_addressed = source.chat_type == "dm"
        if not is_addressed:
            text, is_addressed = _without_address(text, nicks)
        if not text:
            return None
        return MessageEvent(
            text,
            MessageType.COMMAND if text.startswith("/") else MessageType.TEXT,
            source,
            message_id=message_id,
            is_addressed=is_addressed,
            timestamp=_timestamp(line.tags.get("time", "")),
        )

    def user_id(self, line: IrcLine) -> str | None:
        """The identity of a sender: the account, else the nick if nicks are trusted."""
        return line.tags.get("account") or (line.nick.lower() if self._trust_nicks else None)

    def _source(self, line: IrcLine, target: str) -> SessionSource:
        user_id = self.user_id(line)
        if CHANNEL.fullmatch(target):
            chat_id, chat_type = target.lower(), "channel"
        else:
            chat_id, chat_type = user_id or f"{GUEST_PREFIX}{line.nick.lower()}", "dm"
        return SessionSource(
            Platform("irc"),
            chat_id,
            chat_name=target if chat_type == "channel" else line.nick,
            chat_type=chat_type,
            user_id=user_id,
            user_name=line.nick,
        )


def _plain_text(text: str) -> str:
    """A text without formatting; empty for a CTCP request other than `/me`."""
    if text.startswith(ACTION):
        text = f"* {text.removeprefix(ACTION)}"
    elif text.startswith("\x01"):
        return ""
    return without_formatting(text).replace("\x01", "").strip()


def _without_address(text: str, nicks: Collection[str]) -> tuple[str, bool]:
    """The text after `nick:` or `nick,`, and whether it has this form."""
    names = "|".join(map(re.escape, nicks))
    match = re.match(rf"@?(?:{names})\s*[:,]\s*", text, re.IGNORECASE)
    return (text[match.end() :], True) if match else (text, False)


def _timestamp(text: str) -> float:
    """The time of a server-time tag; without a valid one, now."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return time.time()
