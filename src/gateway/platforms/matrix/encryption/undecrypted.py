"""Events whose room keys have not arrived: they are stored until they can be read.

After a time limit the room gets a notice that they could not be read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms.matrix.encryption.record_names import UNREADABLE, WAITING_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.platforms.matrix.encryption.key_store import KeyStore
    from gateway.platforms.matrix.encryption.record_types import WaitingRecord
    from hermes_core.json_values import JsonObject

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
