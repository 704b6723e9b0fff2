"""Messages coming in: kept before they are confirmed, then handled in their turn or at once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING, Final

from gateway.inbound import inbox_codec
from gateway.inbound.prompt_format import said
from gateway.platforms.base import Reacts
from hermes_conversation import pending_input
from hermes_core.errors import HermesError
from hermes_core.isolate import Step, attempt, attempt_async
from hermes_core.log_file import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.inbound.access_control import AccessControl
    from gateway.inbound.commands import ChatCommands
    from gateway.platforms.base import Adapter, MessageEvent
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.entries import SessionEntry
    from gateway.routing.sources import SessionSource
    from gateway.session import SessionStore
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.pending_input import BusyMode
    from hermes_state import SessionDB
    from hermes_state.delivery.inbox import Received

log = logging.getLogger(__name__)

SEEN: Final = "👀"  # for what has to wait behind a turn that runs


class MessageReceiver:
    """The door of the gateway."""

    def __init__(
        self,
        db: SessionDB,
        door: AccessControl,
        places: SessionStore,
        conversations: ConversationCache,
        commands: ChatCommands,
        wake: Callable[[], object],
        adapters: Mapping[str, Adapter],
        busy_mode: BusyMode,
    ) -> None:
        self._db = db
        self._door = door
        self._places = places
        self._conversations = conversations
        self._commands = commands
        self._wake = wake
        self._adapters = adapters
        self._busy_mode = busy_mode
        self._reacting: set[asyncio.Task[None]] = set()

    async def receive(self, account: str, event: MessageEvent) -> None:
        """Keep a message; when this returns, it is on the disk."""
        is_waiting = await asyncio.to_thread(self._keep, account, event)
        self._wake()
        if is_waiting:  # the platform need not wait for that
            task = asyncio.create_task(self._react(event))
            self._reacting.add(task)
            task.add_done_callback(self._reacting.discard)

    async def _react(self, event: MessageEvent) -> None:
        """Let the sender see that a message has arrived and waits."""
        source = event.source
        adapter = self._adapters.get(source.platform.value) if source else None
        if source is not None and event.message_id and isinstance(adapter, Reacts):
            reacting = adapter.react(source.chat_id, event.message_id, SEEN)
            await attempt_async("leave a reaction", reacting)

    def _keep(self, account: str, event: MessageEvent) -> bool:
        """Keep a message; whether it waits behind a turn that runs."""
        source = event.source
        if source is None or event.message_id is None:
            log.warning("a message without a source or an id cannot be kept: %r", event.text[:80])
            return False
        if not self._door.is_for_us(source, is_addressed=event.is_addressed):
            return False
        verdict = self._door.verdict(source)
        if not verdict.is_in:
            self._turn_away(verdict.answer, source, event.message_id)
            return False
        message_id = self._changed(account, event, source) if event.is_edit else event.message_id
        if message_id is None:
            return False
        key = self._places.key_of(source)
        received = self._put(account, event, source, message_id, key)
        return received.is_new and self._looked_at(received.inbox_id, key, event, source)

    def _put(
        self, account: str, event: MessageEvent, source: SessionSource, message_id: str, key: str
    ) -> Received:
        names = {
            "platform": source.platform.value,
            "chat_id": source.chat_id,
            "message_id": message_id,
            "session_key": key,
        }
        received = self._db.receive(account=account, payload=inbox_codec.written(event), **names)
        log.info(
            "a message came in" if received.is_new else "a message came in again",
            extra=log_fields(inbox_id=received.inbox_id, **names),
        )
        return received

    def _looked_at(
        self, inbox_id: int, key: str, event: MessageEvent, source: SessionSource
    ) -> bool:
        """Whether a message waits behind a turn that runs, and was offered to it.

        It is kept: whatever happens here, it is handled in its turn.
        """
        waits: list[bool] = []

        def look() -> None:
            waits.append(self._meanwhile(inbox_id, key, event, source))

        attempt(Step("look at a message while a turn runs", look))
        return any(waits)

    def _changed(self, account: str, event: MessageEvent, source: SessionSource) -> str | None:
        """Take note of an edit: the id to keep it by; None when there is nothing to keep.

        A message that still waits is changed in its place. One that was handled, or is being
        handled, is followed by what it says now. One that never came in is new.
        """
        known = str(event.message_id)
        number = self._db.incoming_by(source.platform.value, account, source.chat_id, known)
        before = self._db.incoming(number) if number is not None else None
        if number is None or before is None:
            event.is_edit = False
            return known
        if before["payload"]["text"] == event.text:
            return None  # a preview of a link was added, say
        is_offered = self._busy_mode == "steer" and self._running(source) is not None
        amended = {**inbox_codec.written(event), "is_edit": False}
        if not is_offered and self._db.amend_waiting(number, amended):
            return None
        return f"{known}#{hashlib.sha256(event.text.encode()).hexdigest()[:16]}"

    def _running(self, source: SessionSource) -> Conversation | None:
        entry = self._places.get(self._places.key_of(source))
        return self._conversations.running(entry.session_id) if entry else None

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

    # What concerns a turn that runs does not wait for its end

    def _meanwhile(
        self, inbox_id: int, key: str, event: MessageEvent, source: SessionSource
    ) -> bool:
        entry = self._places.get(key)
        running = self._conversations.running(entry.session_id) if entry else None
        if entry is None or running is None:
            return False
        try:
            text = self._commands.meanwhile(entry, event, inbox_codec.uid(inbox_id))
        except HermesError as error:
            text = str(error)
        if text is None:
            self._say_to(running, inbox_id, entry, event)
            return True
        if self._db.settle_waiting(inbox_id) and text:
            self._db.owe_reply(
                f"inbox:{inbox_id}:meanwhile",
                platform=source.platform.value,
                target={"chat_id": source.chat_id, "thread_id": source.thread_id},
                payload={"text": text},
                session_id=entry.session_id,
                inbox_id=inbox_id,
            )
        return False

    def _say_to(
        self, running: Conversation, inbox_id: int, entry: SessionEntry, event: MessageEvent
    ) -> None:
        """Interrupt the turn, or let it read the message; it waits in the inbox all the same.

        A message that the turn has read is settled with the turn's answer; one that it has
        not is handled after it.
        """
        if event.get_command():
            return
        mode = self._busy_mode
        if mode == "steer" and event.media_urls:
            mode = "queue"  # a turn reads text only
        text = said(event, is_shared=self._places.is_shared(entry))
        pending_input.submit_to_agent(running.agent, text, mode, inbox_codec.uid(inbox_id))
