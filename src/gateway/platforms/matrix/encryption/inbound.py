"""Incoming events of encrypted rooms: decryption, waiting for keys, verification."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway import config_values
from gateway.platforms.matrix.encryption import verification
from gateway.platforms.matrix.encryption.key_store import KeyStoreTakenError
from gateway.platforms.matrix.encryption.machine import ENCRYPTED_TYPE
from gateway.platforms.matrix.encryption.record_types import UNREADABLE, WAITING_PREFIX
from hermes_core.isolate import attempt_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.platforms.base import MessageEvent
    from gateway.platforms.matrix.encryption.key_store import KeyStore
    from gateway.platforms.matrix.encryption.machine import EncryptionMachine
    from gateway.platforms.matrix.encryption.record_types import WaitingRecord
    from gateway.platforms.matrix.encryption.verification import SendEvent, Verifications
    from hermes_core.json_values import JsonData, JsonObject

NOTICE: Final = "I could not decrypt {count} here: the key did not arrive. Please send {it} again."


class WaitingEvent(NamedTuple):
    """An event that cannot be read yet."""

    room_id: str
    event: JsonObject
    since: float

    @property
    def event_id(self) -> str:
        """The ID of the event."""
        return config_values.text(self.event.get("event_id"))

    @property
    def session_id(self) -> str:
        """The ID of the missing key."""
        return config_values.text(
            config_values.mapping(self.event.get("content")).get("session_id")
        )


class WaitingEvents:
    """The events of an account that wait for their keys, in the key store."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._events: dict[str, WaitingEvent] = {}
        record: WaitingRecord
        for event_id, record in store.items(WAITING_PREFIX):
            self._events[event_id] = WaitingEvent(**record)

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, event_id: str) -> bool:
        return event_id in self._events

    def add(self, room_id: str, event: JsonObject) -> None:
        """Store an event; it is on disk after the next flush."""
        waiting = WaitingEvent(room_id, event, time.time())
        if waiting.event_id not in self._events:
            self._events[waiting.event_id] = waiting
            self._store.keep_json(WAITING_PREFIX + waiting.event_id, waiting._asdict())

    def remove(self, event_id: str) -> None:
        """Delete an event that was read, or deleted by its sender."""
        if self._events.pop(event_id, None) is not None:
            self._store.remove(WAITING_PREFIX + event_id)

    def of_keys(self, session_ids: Iterable[str]) -> list[WaitingEvent]:
        """The events that some keys decrypt, oldest first."""
        wanted = set(session_ids)
        return [item for item in self.all() if item.session_id in wanted]

    def all(self) -> list[WaitingEvent]:
        """All events, oldest first."""
        return sorted(self._events.values(), key=lambda item: item.since)

    def expired(self, seconds: float) -> dict[str, list[WaitingEvent]]:
        """The events that have waited for too long, by room."""
        rooms: dict[str, list[WaitingEvent]] = {}
        for item in self.all():
            if time.time() - item.since >= seconds:
                rooms.setdefault(item.room_id, []).append(item)
        return rooms

    def give_up(self, events: list[WaitingEvent]) -> None:
        """Delete events that were never read, and count them."""
        count = config_values.number(self._store.load_json(UNREADABLE).get("count"), 0)
        self._store.keep_json(UNREADABLE, {"count": count + len(events)})
        for item in events:
            self.remove(item.event_id)


def notice(count: int) -> str:
    """The text that tells a room about messages that could not be read."""
    many = f"{count} messages"
    return NOTICE.format(
        count="a message" if count == 1 else many, it="it" if count == 1 else "them"
    )


log = logging.getLogger(__name__)

KEY_WAIT_SECONDS: Final = 600
TICK_SECONDS: Final = 1.0
NOTICE_PAUSE_SECONDS: Final = 30.0  # after one that was not sent


class EncryptedInbox:
    """Reads the events of encrypted rooms, and the messages to this device."""

    def __init__(
        self,
        machine: EncryptionMachine,
        verifications: Verifications,
        send_event: SendEvent,
        is_owner: Callable[[str], bool],
        key_wait_seconds: int = KEY_WAIT_SECONDS,
    ) -> None:
        self._machine = machine
        self._verifications = verifications
        self._send_event = send_event
        self._is_owner = is_owner
        self._key_wait_seconds = key_wait_seconds
        self.waiting = WaitingEvents(machine.store)
        self._new_keys: set[str] = set()
        self._next_notices: dict[str, float] = {}  # the earliest time, by room
        self._task: asyncio.Task[None] | None = None

    def start(self, retry: Callable[[WaitingEvent], None]) -> None:
        """Try again what waited when the last run ended, and watch the time limits."""
        for item in self.waiting.all():
            retry(item)
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def flush(self) -> None:
        """Store the keys that have changed."""
        await self._machine.store.flush()

    async def receive(self, batch: Any) -> None:
        """Handle the messages to this device; when this returns, their keys are stored."""
        store = self._machine.store
        if not await asyncio.to_thread(store.is_owned):
            raise KeyStoreTakenError("Another program has opened the key store of this account.")
        verifying = [item for item in batch.to_device_events if _is_verification(item)]
        others = [item for item in batch.to_device_events if not _is_verification(item)]
        self._new_keys |= self._machine.receive(batch, others)
        await store.flush()
        await self._machine.settle()
        for item in verifying:
            content = config_values.mapping(item.source.get("content"))
            kind, sender = str(item.source.get("type")), str(item.source.get("sender"))
            work = self._verifications.handle(kind, sender, content)
            await attempt_async("handle verification", work)

    def take_readable(self) -> list[WaitingEvent]:
        """The waiting events whose keys have arrived."""
        found = self.waiting.of_keys(self._new_keys)
        self._new_keys.clear()
        return found

    async def read(self, room_id: str, event: JsonObject) -> JsonObject | None:
        """An event in the clear; None if it waits for its key or was handled here."""
        if event.get("type") == "m.room.redaction":
            content = config_values.mapping(event.get("content"))
            self.waiting.remove(config_values.text(event.get("redacts") or content.get("redacts")))
        if event.get("type") == ENCRYPTED_TYPE:
            if not config_values.mapping(event.get("content")).get("algorithm"):
                return None  # deleted
            self._machine.store.add_encrypted_room(room_id)
            clear = await self._machine.decrypt(room_id, event)
            if clear is None:
                await self._wait(room_id, event)
                return None
            event = clear
        return None if await self._verify(room_id, event) else event

    async def _wait(self, room_id: str, event: JsonObject) -> None:
        """Store an event that cannot be read, and request its key."""
        if config_values.text(event.get("event_id")) in self.waiting:
            return
        log.warning("event %s in %s waits for its key", event.get("event_id"), room_id)
        self.waiting.add(room_id, event)
        self._machine.request_key(room_id, event)
        await self.flush()
        await self._machine.settle()

    async def _verify(self, room_id: str, event: JsonObject) -> bool:
        """Handle an event of a verification in a room; whether it is one."""
        content = config_values.mapping(event.get("content"))
        kind = config_values.text(event.get("type"))
        if kind == "m.room.message":
            kind = config_values.text(content.get("msgtype"))
        if not kind.startswith(verification.TYPE_PREFIX):
            return False
        sender = config_values.text(event.get("sender"))
        event_id = config_values.text(event.get("event_id"))
        await self._verifications.handle(kind, sender, content, room_id, event_id)
        return True

    async def answer(self, message: MessageEvent) -> bool:
        """Take the owner's answer to the emoji; whether the message is one."""
        words = message.text.lower().replace("!", "/", 1).split()
        is_answer = words[:1] == [verification.COMMAND] and words[1:] in (["yes"], ["no"])
        user = message.source.user_id if message.source else None
        if not is_answer or not self._verifications.is_open:
            return False
        if not await asyncio.to_thread(self._is_owner, user or ""):
            return False
        await self._verifications.answer(is_same=words[1] == "yes")
        return True

    # Time limits

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await attempt_async("check verification", self._verifications.poll())
            if len(self.waiting):
                await attempt_async("give up waiting events", self._give_up())

    async def _give_up(self) -> None:
        """Tell rooms about messages that could not be read in time."""
        for room_id, events in self.waiting.expired(self._key_wait_seconds).items():
            if time.monotonic() < self._next_notices.get(room_id, 0):
                continue  # one notice for all that expires meanwhile
            content: dict[str, JsonData] = {
                "msgtype": "m.notice",
                "body": notice(len(events)),
                "m.mentions": {},
                "m.relates_to": {"m.in_reply_to": {"event_id": events[0].event_id}},
            }
            result = await self._send_event(room_id, "m.room.message", content)
            if not result.success and result.retryable:
                log.warning("notice about unreadable events not sent: %s", result.error)
                self._next_notices[room_id] = time.monotonic() + NOTICE_PAUSE_SECONDS
                continue
            self._next_notices[room_id] = time.monotonic() + self._key_wait_seconds
            self.waiting.give_up(events)
            await self.flush()
            log.error("%d events in %s could not be decrypted", len(events), room_id)


def _is_verification(event: Any) -> bool:
    return str(event.source.get("type")).startswith(verification.TYPE_PREFIX)
