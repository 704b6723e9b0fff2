"""The inbox: unreadable messages, store errors, a clock that is set back."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from gateway.inbound.inbox_workers import InboxWorkers
from hermes_core.errors import StoreError
from hermes_state.delivery.inbox import InboxRepository
from hermes_state.messages.history import MessageRepository
from support.gateway_process import GatewayProcess
from support.gateways import conversation_texts, local_message, outbox_texts, running_gateway
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.command_line import Hermes

UNREADABLE_PAYLOADS = (
    "{broken",
    "null",
    "[]",
    "7",
    "[" * 100_000,
    '{"text": "x"}',
    '{"text": 7, "source": {"platform": "local", "chat_id": "c0"}}',
    '{"text": "x", "source": "local"}',
    '{"text": "x", "source": {"platform": "local"}, "type": "of a newer release"}',
)


@pytest.fixture
def gateway(hermes_home: Path) -> Iterator[GatewayProcess]:
    result = GatewayProcess()
    yield result
    result.cleanup()


def store_waiting(db: SessionDB, chat: str, platform: str = "local") -> int:
    """Store a message that no gateway has claimed."""
    source: Any = {"platform": "local", "chat_id": chat, "user_id": "u1"}
    return db.inbox.receive(
        platform=platform,
        account="local",
        chat_id=chat,
        message_id=f"{platform}-{chat}",
        session_key=f"agent:main:local:dm:{chat}",
        payload={"text": "hi", "source": source},
    ).inbox_id


def set_payload(db: SessionDB, table: str, number: int, payload: str) -> None:
    sql = f"UPDATE hermes_{table} SET payload = ? WHERE {table}_id = ?"
    db.engine.write(lambda tx: tx.execute(sql, (payload, number)))


def answered_chats(db: SessionDB) -> set[str]:
    rows = db.engine.read(lambda reader: reader.rows("SELECT target FROM hermes_outbox"))
    return {json.loads(row[0])["chat_id"] for row in rows}


def test_unreadable_rows_are_quarantined_and_those_behind_them_are_answered(
    db: SessionDB, gateway: GatewayProcess, answering: Any, hermes: Hermes
) -> None:
    answering("[{say: Hello.}, {say: Hello.}, {say: Hello.}]")
    numbers = [store_waiting(db, f"bad{index}") for index in range(len(UNREADABLE_PAYLOADS))]
    numbers.append(store_waiting(db, "bad job", platform="cron"))
    for number, payload in zip(numbers, (*UNREADABLE_PAYLOADS, "{}"), strict=True):
        set_payload(db, "inbox", number, payload)
    healthy = {"c1", "c2", "c3"}
    for chat in sorted(healthy):
        store_waiting(db, chat)
    gateway.start()
    wait_until(lambda: answered_chats(db) == healthy, "the healthy messages")
    wait_until(lambda: db.inbox.count_failed() == len(numbers), "the quarantine")
    result = hermes("gateway", "quarantine", "--json")
    quarantined = {row["inbox_id"]: row for row in json.loads(result.out)}
    assert sorted(quarantined) == numbers
    assert quarantined[numbers[0]]["content"] == "{broken"
    assert all("readable" in row["error"] for row in quarantined.values())
    gateway.stop()


async def test_an_unreadable_message_does_not_keep_others_from_a_running_turn(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[int] = []
    async with running_gateway(db, tmp_path) as service:
        await service.inbox_workers.stop(0)  # the turns below do not end
        for chat in ("c1", "c2"):
            store_waiting(db, chat)
            assert db.inbox.claim() is not None
        bad, good = (store_waiting(db, chat, "telegram") for chat in ("c1", "c2"))
        set_payload(db, "inbox", bad, "{broken")
        monkeypatch.setattr(service.receiver, "_offer", lambda number, *_: offered.append(number))
        service.inbox_workers._offer_waiting()
    assert offered == [good]


async def test_an_unreadable_reply_is_given_up_and_those_behind_it_are_sent(
    db: SessionDB, tmp_path: Path
) -> None:
    target: Any = {"chat_id": "c1"}
    numbers = [
        db.outbox.add(f"k{index}", platform="local", target=target, payload={"text": "x"})
        for index in range(3)
    ]
    for number, payload in zip(numbers, ("{broken", "[]"), strict=False):
        set_payload(db, "outbox", number, payload)
    reply = db.outbox.claim("local")
    assert reply is not None
    assert reply.outbox_id == numbers[-1]
    sql = "SELECT state, error FROM hermes_outbox ORDER BY outbox_id LIMIT 2"
    rows = db.engine.read(lambda reader: reader.rows(sql))
    assert rows == [("failed", "it is not readable")] * 2


async def test_an_unreadable_message_is_settled_and_not_retried_forever(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": "k"}
    db.inbox.receive(**row, message_id="m0", payload={"text": "x", "source": {"platform": ""}})
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("hi", "m1"))
        await async_wait_until(lambda: outbox_texts(db) == ["Hello."])
    (result,) = db.chats.find_incoming("m0")
    assert (result.state, result.attempts) == ("failed", 1)


async def test_an_unreadable_message_does_not_affect_others(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with running_gateway(db, tmp_path) as service:
        received = local_message("hi", "m1", group_id="album")  # more may be on its way
        await service.receiver.receive("local", received)
        key = "agent:main:local:dm:c1"
        row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": key}
        db.inbox.receive(**row, message_id="m2", payload={"source": {"platform": "gone"}})
        await async_wait_until(lambda: outbox_texts(db) and db.inbox.waiting_places() == 0)
        await async_wait_until(lambda: db.chats.find_incoming("m2")[0].state == "failed")
    assert outbox_texts(db) == ["Hello."]


async def test_a_store_error_during_a_turn_is_not_an_answer(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    times: list[int] = []
    real = MessageRepository.append_message

    def raise_unavailable(self: MessageRepository, *values: Any, **names: Any) -> Any:
        times.append(1)
        if len(times) == 1:
            raise StoreError("the disk is full")
        return real(self, *values, **names)

    monkeypatch.setattr(MessageRepository, "append_message", raise_unavailable)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("hi", "m1"))
        await async_wait_until(lambda: outbox_texts(db))
    assert outbox_texts(db) == ["Hello."]
    assert db.chats.find_incoming("m1")[0].attempts == 1  # of those after which it is given up


async def test_a_clock_set_back_delays_no_message(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    async with running_gateway(db, tmp_path) as service:
        received = local_message("look", "m1", group_id="g")
        real = InboxWorkers.start

        def start_an_hour_earlier(self: InboxWorkers, row: Any, *, is_owners: bool) -> None:
            real(self, row._replace(received_at=row.received_at + 3600), is_owners=is_owners)

        monkeypatch.setattr(InboxWorkers, "start", start_an_hour_earlier)
        await service.receiver.receive("local", received)
        await async_wait_until(lambda: outbox_texts(db) == ["Hello."])


async def test_a_message_whose_client_disconnects_while_it_is_stored_is_answered(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    is_storing, may_store = threading.Event(), threading.Event()
    real = InboxRepository.receive

    def receive_slowly(self: InboxRepository, **fields: Any) -> Any:
        is_storing.set()
        may_store.wait(PATIENCE_SECONDS)
        return real(self, **fields)

    monkeypatch.setattr(InboxRepository, "receive", receive_slowly)
    async with running_gateway(db, tmp_path) as service:
        receiving = asyncio.create_task(service.receiver.receive("local", local_message("hi", "m")))
        await asyncio.to_thread(is_storing.wait, PATIENCE_SECONDS)
        receiving.cancel()
        may_store.set()
        await async_wait_until(lambda: outbox_texts(db) == ["Hello."])


async def test_an_answer_whose_delivery_cannot_be_prepared_is_stored_and_delivered(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    real, failures = InboxRepository.waiting_behind, [StoreError("locked")]

    def fail_once(self: InboxRepository, message: Any, limit: int = 50) -> Any:
        if db.message_count() and failures:
            raise failures.pop()
        return real(self, message, limit)

    monkeypatch.setattr(InboxRepository, "waiting_behind", fail_once)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("hi", "m"))
        await async_wait_until(lambda: outbox_texts(db) == ["Hello."])
    assert conversation_texts(db) == ["hi", "Hello."]
    assert not failures
