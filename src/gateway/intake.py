"""Messages coming in: kept before they are confirmed, then handled in their turn or at once."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from gateway import letters
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.commands import Commands
    from gateway.conversations import Conversations
    from gateway.door import Door
    from gateway.platforms.base import MessageEvent
    from gateway.session import SessionStore
    from gateway.sources import SessionSource
    from hermes_state import SessionDB

log = logging.getLogger(__name__)


class Intake:
    """The door of the gateway."""

    def __init__(
        self,
        db: SessionDB,
        door: Door,
        places: SessionStore,
        conversations: Conversations,
        commands: Commands,
        wake: Callable[[], object],
        *,
        interrupts: bool = False,
    ) -> None:
        self._db = db
        self._door = door
        self._places = places
        self._conversations = conversations
        self._commands = commands
        self._wake = wake
        self._interrupts = interrupts

    async def receive(self, account: str, event: MessageEvent) -> None:
        """Keep a message; when this returns, it is on the disk."""
        await asyncio.to_thread(self._keep, account, event)
        self._wake()

    def _keep(self, account: str, event: MessageEvent) -> None:
        source = event.source
        if source is None or event.message_id is None:
            log.warning("a message without a source or an id cannot be kept: %r", event.text[:80])
            return
        verdict = self._door.verdict(source)
        if not verdict.is_in:
            self._turn_away(verdict.answer, source, event.message_id)
            return
        key = self._places.key_of(source)
        received = self._db.receive(
            platform=source.platform.value,
            account=account,
            chat_id=source.chat_id,
            message_id=event.message_id,
            session_key=key,
            payload=letters.written(event),
        )
        if received.is_new:
            self._meanwhile(received.inbox_id, key, event, source)

    def _turn_away(self, answer: str, source: SessionSource, message_id: str) -> None:
        """A stranger: nothing of the message is kept."""
        log.info("a message of %s on %s was not let in", source.user_id, source.platform.value)
        if answer:
            self._db.owe_reply(
                f"stranger:{source.platform.value}:{source.chat_id}:{message_id}",
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": answer},
            )

    def _meanwhile(
        self, inbox_id: int, key: str, event: MessageEvent, source: SessionSource
    ) -> None:
        """What concerns a turn that runs does not wait for its end."""
        entry = self._places.get(key)
        running = self._conversations.running(entry.session_id) if entry else None
        if entry is None or running is None:
            return
        try:
            text = self._commands.meanwhile(entry, event)
        except HermesError as error:
            text = str(error)
        if text is None:
            if self._interrupts and not event.get_command():
                running.agent.interrupt("another message came")
            return
        if self._db.settle_waiting(inbox_id) and text:
            self._db.owe_reply(
                f"inbox:{inbox_id}:meanwhile",
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": text},
                session_id=entry.session_id,
                inbox_id=inbox_id,
            )
