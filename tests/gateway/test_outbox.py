"""The outbox: faulty adapters, expiry, retention."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from gateway.outbound.sender import DUPLICATE_NOTE, OutboxSender
from gateway.platforms.base import Abilities, ErrorKind, SendResult
from hermes_core.media_store import MediaStore
from support.gateways import running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from gateway.platforms.base import OutgoingMessage
    from hermes_state import SessionDB
    from hermes_state.delivery.outbox import StoredReply


class FaultyAdapter:
    """An adapter that raises an unexpected error."""

    abilities: ClassVar = Abilities()
    account = "faulty"

    def __init__(self) -> None:
        self.attempts = 0

    async def connect(self, _receive: Any) -> None: ...

    async def disconnect(self) -> None: ...

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        self.attempts += 1
        raise ZeroDivisionError("a mistake in an adapter")


async def test_an_adapter_that_breaks_does_not_silence_its_platform(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    faulty = FaultyAdapter()
    for number in range(6):
        target = {"chat_id": str(number)}
        db.outbox.add(f"k{number}", platform="telegram", target=target, payload={"text": "hi"})
    async with running_gateway(db, tmp_path, adapters={"telegram": faulty}):
        await async_wait_until(lambda: faulty.attempts >= 6)
    states = {stored_reply(db, number).state for number in range(1, 7)}
    assert "sending" not in states


def stored_reply(db: SessionDB, outbox_id: int) -> StoredReply:
    reply = db.chats.reply(outbox_id)
    assert reply is not None
    return reply


class SlowAdapter(FaultyAdapter):
    """An adapter whose first message is on its way until the test lets it arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.may_arrive = asyncio.Event()
        self.sent: list[str] = []

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        self.attempts += 1
        await self.may_arrive.wait()
        self.sent.append(outgoing.text)
        return SendResult(True, outgoing.text)


async def test_a_reply_that_waits_for_an_earlier_one_is_sent_before_the_sender_stops(
    db: SessionDB,
) -> None:
    slow = SlowAdapter()
    sender = OutboxSender(db, "telegram", slow)

    def add(text: str) -> None:
        db.outbox.add(text, platform="telegram", target={"chat_id": "1"}, payload={"text": text})

    add("first")
    running = asyncio.create_task(sender.run())
    await async_wait_until(lambda: slow.attempts)
    add("second")
    sender.stop()
    slow.may_arrive.set()
    await running
    assert slow.sent == ["first", "second"]


class RefusingAdapter(FaultyAdapter):
    """An adapter of a platform that refuses every message."""

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        self.attempts += 1
        return SendResult(False, error="the bot was blocked", error_kind=ErrorKind.FORBIDDEN)


async def test_a_refused_reply_is_given_up_after_one_attempt(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    refusing = RefusingAdapter()
    number = db.outbox.add(
        "k", platform="telegram", target={"chat_id": "1"}, payload={"text": "hi"}
    )
    async with running_gateway(db, tmp_path, adapters={"telegram": refusing}):
        await async_wait_until(lambda: stored_reply(db, number).error)
    reply = stored_reply(db, number)
    assert (reply.state, reply.attempts) == ("failed", 1)
    assert reply.error == "the bot was blocked"


class EditingAdapter(FaultyAdapter):
    """An adapter of a platform whose message for an edit is gone."""

    abilities: ClassVar = Abilities(edit=True, files=True)

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.files: list[Path | None] = []
        self.edited: list[str] = []

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        self.texts.append(outgoing.text)
        self.files.append(outgoing.file)
        return SendResult(True, message_id="1")

    async def edit(self, _outgoing: OutgoingMessage, message_id: str) -> SendResult:
        self.edited.append(message_id)
        return SendResult(False, error="no such message", error_kind=ErrorKind.NOT_FOUND)


async def test_a_reply_that_may_have_arrived_is_repeated_with_a_note(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    adapter = EditingAdapter()
    db.outbox.add("k", platform="telegram", target={"chat_id": "1"}, payload={"text": "hi"})
    claimed = db.outbox.claim("telegram")
    assert claimed is not None
    db.outbox.postpone(claimed.outbox_id, "cut", may_have_arrived=True, after_seconds=0)
    async with running_gateway(db, tmp_path, adapters={"telegram": adapter}):
        await async_wait_until(lambda: adapter.texts)
    assert adapter.texts == [f"{DUPLICATE_NOTE}hi"]


async def test_a_reply_whose_live_message_is_gone_is_a_new_message(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    adapter = EditingAdapter()
    payload = {"text": "hi", "in_place_of": "m1"}
    db.outbox.add("k", platform="telegram", target={"chat_id": "1"}, payload=payload)
    async with running_gateway(db, tmp_path, adapters={"telegram": adapter}):
        await async_wait_until(lambda: adapter.texts)
    assert (adapter.edited, adapter.texts) == (["m1"], ["hi"])


async def test_a_file_is_not_sent_where_the_platform_has_no_files(
    db: SessionDB, tmp_path: Path
) -> None:
    adapter = FaultyAdapter()
    payload: Any = {"text": "", "file": str(tmp_path / "menu.pdf")}
    number = db.outbox.add("k1", platform="telegram", target={"chat_id": "1"}, payload=payload)
    async with running_gateway(db, tmp_path, adapters={"telegram": adapter}):
        await async_wait_until(lambda: stored_reply(db, number).state == "failed")
    assert (adapter.attempts, stored_reply(db, number).error) == (0, "telegram cannot send files")


async def test_a_file_of_another_machine_is_fetched_and_keeps_its_name(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[]")
    adapter = EditingAdapter()
    stored = MediaStore(tmp_path / "other" / "media", remote=db.files).keep(b"text", "notes.txt")
    payload = {"text": "", "file": "/elsewhere/notes.txt", "media": stored.path.name}
    monkeypatch.setattr("hermes_state.files.shared_files", lambda store: store.files)
    db.outbox.add("k", platform="telegram", target={"chat_id": "1"}, payload=payload)
    async with running_gateway(db, tmp_path, adapters={"telegram": adapter}):
        await async_wait_until(lambda: adapter.texts)
    (file,) = adapter.files
    assert file is not None
    assert (file.name, file.read_bytes()) == ("notes.txt", b"text")


def test_old_messages_are_not_sent(db: SessionDB) -> None:
    number = db.outbox.add("k", platform="local", target={}, payload={"text": "x"})
    sql = "UPDATE hermes_outbox SET created_at = 1"
    db.engine.write(lambda tx: tx.run(sql))
    assert db.outbox.claim() is None
    assert stored_reply(db, number).state == "failed"


def test_old_messages_are_pruned_past_unsettled_ones(db: SessionDB) -> None:
    db.outbox.add("never", platform="gone", target={}, payload={})
    for number in range(1500):
        db.outbox.add(f"k{number}", platform="a", target={}, payload={})
    sql = "UPDATE hermes_outbox SET state = 'sent', settled_at = 1 WHERE platform = 'a'"
    db.engine.write(lambda tx: tx.run(sql))
    assert [db.chats.forget_mail(30) for _ in range(3)] == [1000, 500, 0]
