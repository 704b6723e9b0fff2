"""A history in PostgreSQL: a server that crashes, claims and leases of several processes."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import size
from hermes_core.config.file import ConfigFile
from hermes_core.errors import LeaseLostError, LeaseTakenError, StoreError
from hermes_state import SessionDB
from support.postgres import running_postgres
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NODE_TIMEOUT_SECONDS = "3"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of its own that flushes its files, so that it can crash."""
    with running_postgres(is_durable=True) as result:
        yield result


@pytest.fixture
def url(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with server.history() as address:
        monkeypatch.setenv("HERMES_STORE_URL", address)
        monkeypatch.setenv("HERMES_STORE_NODE_TIMEOUT_SECONDS", NODE_TIMEOUT_SECONDS)
        yield address


@pytest.mark.usefixtures("url")
def test_a_server_that_crashes_loses_nothing_that_was_acknowledged(
    server: PostgresServer, figures: Callable[..., None]
) -> None:
    ConfigFile.of_home().set("store.busy_seconds", "60")
    crashes, acknowledged = size(3, 30), [[] for _ in range(4)]
    is_over = threading.Event()
    with SessionDB() as db:

        def write(number: int) -> None:
            session = db.create_session(f"s{number}", "cli")
            while not is_over.is_set():
                text = f"{number}-{len(acknowledged[number])}"
                assert db.append_message(session, "user", text, uid=f"uid-{text}") > 0
                acknowledged[number].append(text)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(crashes):
            before = sum(map(len, acknowledged))
            wait_until(lambda before=before: sum(map(len, acknowledged)) > before + 50)  # type: ignore[misc]
            server.stop("immediate")
            server.start()
        is_over.set()
        for thread in threads:
            thread.join()
        for number, texts in enumerate(acknowledged):
            assert [m["content"] for m in db.get_messages(f"s{number}")] == texts
    total = sum(map(len, acknowledged))
    figures("PostgreSQL, server crashes", crashes=crashes, messages=total, lost=0, doubled=0)


@pytest.mark.usefixtures("url")
def test_only_one_of_many_processes_gets_a_claim_or_a_lease() -> None:
    stores = [SessionDB() for _ in range(2)]
    taken: list[int] = []
    for number in range(60):
        stores[0].inbox.receive(
            platform="local", account="a", chat_id=f"c{number % 6}", message_id=str(number),
            session_key=f"place{number % 6}", payload={"text": "hello"},
        )  # fmt: skip

    def work(db: SessionDB) -> None:
        while (row := db.inbox.claim()) is not None or db.inbox.waiting_places():
            if row is None:
                time.sleep(random.random() / 100)
                continue
            taken.append(row.inbox_id)
            db.inbox.settle(row.inbox_id, "s")

    threads = [threading.Thread(target=work, args=(stores[n % 2],)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 60
    by_place: dict[int, list[int]] = {}
    for inbox_id in taken:
        by_place.setdefault(inbox_id % 6, []).append(inbox_id)
    assert all(ids == sorted(ids) for ids in by_place.values())
    lease = stores[0].leases.acquire("conversation")
    stores[0].leases.release(lease)
    for store in stores:
        store.close()


@pytest.mark.usefixtures("url")
def test_a_machine_that_was_presumed_dead_cannot_write_to_a_turn_that_was_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SessionDB() as db:
        session = db.create_session("s", "cli")
        lease = db.leases.acquire(session, seconds=0.2)
        with pytest.raises(LeaseTakenError):
            db.leases.acquire(session)
        time.sleep(0.3)
        newer = db.leases.acquire(session)
        assert newer.token > lease.token
        with pytest.raises(LeaseLostError):
            db.append_message(session, "user", "late", lease=lease)
        with pytest.raises(StoreError):
            db.leases.renew(lease)
        assert db.append_message(session, "user", "in time", lease=newer)
