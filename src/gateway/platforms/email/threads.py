"""Threads of e-mail as places: which conversation a message belongs to, and how it is answered.

A thread is named by its first message ID. Some programs send only the ID of the message that they
answer, so the message IDs of the agent contain a hash of the place they were sent to: a reply to
one of them is recognized without the rest of the thread.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms.deduplication import idempotency_key
from gateway.platforms.email.addresses import message_ids

if TYPE_CHECKING:
    from gateway.platforms.base import Records

log = logging.getLogger(__name__)

RECORD_PREFIX: Final = "thread:"
MAX_THREADS: Final = 5000
PRUNED_THREADS: Final = 500  # the oldest, at once
MAX_REFERENCES: Final = 20
HASH_CHARS: Final = 16


class ThreadRecord(NamedTuple):
    """What a reply to a thread needs."""

    root: str  # empty for the messages that the agent sends on its own
    subject: str
    first: str  # the first received message
    last: str  # the latest received message
    references: tuple[str, ...]  # of the latest received message, and its own ID
    received: int  # the number of messages
    at: float

    def encode(self) -> bytes:
        """The record as JSON."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> ThreadRecord:
        """Read a record."""
        content = config_values.mapping(json.loads(data))
        references = content.get("references")
        return cls(
            config_values.text(content.get("root")),
            config_values.text(content.get("subject")),
            config_values.text(content.get("first")),
            config_values.text(content.get("last")),
            tuple(map(str, references)) if isinstance(references, list) else (),
            config_values.number(content.get("received"), 0),
            config_values.fraction(content.get("at"), 0.0),
        )


class MailThread(NamedTuple):
    """The thread of a message."""

    thread_id: str | None
    record: ThreadRecord | None  # None if the agent has not seen it yet
    is_continued: bool  # the agent has the earlier messages


def place_hash(chat_id: str, thread_id: str | None) -> str:
    """A short name of a place."""
    return idempotency_key("place", chat_id, thread_id or "")[:HASH_CHARS]


def reply_id(key: str, chat_id: str, thread_id: str | None, domain: str) -> str:
    """The message ID of what is sent under an idempotency key: the same for every attempt."""
    return f"<{idempotency_key(key)[:32]}.{place_hash(chat_id, thread_id)}@{domain}>"


class MailThreads:
    """The known threads of a mailbox, kept across restarts."""

    def __init__(self, records: Records | None, domain: str) -> None:
        self._store = records
        self._domain = domain
        self._records: dict[str, ThreadRecord] = {}

    async def load(self) -> None:
        """Load the stored threads."""
        if self._store is None:
            return
        stored = await asyncio.to_thread(self._store.load, RECORD_PREFIX)
        self._records = {name: ThreadRecord.decode(data) for name, data in stored.items()}

    def find(self, chat_id: str, message_id: str, references: list[str]) -> MailThread:
        """The thread of a message that refers to earlier ones, the latest last."""
        for reference in reversed(references):
            named = self._place_named_by(reference)
            if named == place_hash(chat_id, None):
                return MailThread(None, self._records.get(named), is_continued=True)
            record = self._records.get(named)
            if record is not None and place_hash(chat_id, record.root) == named:
                return MailThread(record.root, record, is_continued=True)
        root = references[0] if references else message_id
        record = self._records.get(place_hash(chat_id, root))
        is_continued = record is not None and record.first != message_id
        return MailThread(root, record, is_continued)

    def get(self, chat_id: str, thread_id: str | None) -> ThreadRecord | None:
        """The record of a place."""
        return self._records.get(place_hash(chat_id, thread_id))

    async def note(
        self,
        chat_id: str,
        thread: MailThread,
        message_id: str,
        subject: str,
        references: list[str],
    ) -> ThreadRecord:
        """Store that a message was received in a thread."""
        before = thread.record
        is_repeated = before is not None and before.last == message_id
        own = message_ids(message_id)
        record = ThreadRecord(
            thread.thread_id or "",
            before.subject if before and thread.thread_id else subject,
            before.first if before else message_id,
            message_id,
            tuple([*references, *own][-MAX_REFERENCES:]),
            (before.received if before else 0) + (not is_repeated),
            time.time(),
        )
        if not is_repeated:
            await self._save(place_hash(chat_id, thread.thread_id), record)
        return record

    async def _save(self, name: str, record: ThreadRecord) -> None:
        changes: dict[str, bytes | None] = {name: record.encode()}
        if len(self._records) >= MAX_THREADS and name not in self._records:
            oldest = sorted(self._records, key=lambda item: self._records[item].at)
            changes |= dict.fromkeys(oldest[:PRUNED_THREADS])
        if self._store is not None:
            await asyncio.to_thread(self._store.change, RECORD_PREFIX, changes)
        self._records[name] = record
        for old in changes.keys() - {name}:
            del self._records[old]

    def _place_named_by(self, message_id: str) -> str:
        """The hash of a place in a message ID of the agent; empty for other message IDs."""
        local, _, domain = message_id.strip("<>").rpartition("@")
        key, _, named = local.rpartition(".")
        is_own = domain == self._domain and len(key) == 32 and len(named) == HASH_CHARS
        return named if is_own else ""
