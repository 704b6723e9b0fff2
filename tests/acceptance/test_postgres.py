"""A history in PostgreSQL: a server that crashes, machines that die, freeze and wake."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import size
from hermes_core.config.file import ConfigFile
from hermes_core.errors import LeaseLostError, LeaseTakenError, StoreError
from hermes_state import SessionDB
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.model_servers import configured_models
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


class Node:
    """A machine with a gateway of its own, in a home of its own."""

    def __init__(self, name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # The path of a socket is limited to about 100 characters.
        self.home = Path(tempfile.mkdtemp(prefix="hermes-node-", dir="/tmp"))
        config = home / "config.yaml"
        (self.home / "config.yaml").write_bytes(config.read_bytes())
        self._name = name
        self._monkeypatch = monkeypatch
        self.gateway = GatewayProcess()

    @property
    def socket(self) -> Path:
        return self.home / "run" / "gateway.sock"

    def start(self) -> None:
        self.use()
        self.gateway.start(HERMES_HOME=str(self.home), HERMES_NODE_NAME=self._name)

    def use(self) -> None:
        """Read the status of this machine from now on."""
        self._monkeypatch.setenv("HERMES_HOME", str(self.home))

    def is_active(self) -> bool:
        self.use()
        return self.gateway.is_up()


@pytest.fixture
def nodes(
    url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Node, Node]]:
    del url
    with configured_models(llm__window="8000", memory__review_turns="0") as start_model:
        start_model("[{say: one}, {say: two}, {say: three}, {say: four}]")
        first, second = (Node(name, hermes_home, monkeypatch) for name in ("first", "second"))
        yield first, second
        for node in (first, second):
            node.gateway.cleanup()
            shutil.rmtree(node.home)


async def test_another_machine_takes_over_when_the_active_gateway_is_killed(
    nodes: tuple[Node, Node],
) -> None:
    first, second = nodes
    first.start()
    wait_until(first.is_active)
    second.start()
    async with LocalChatClient(first.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1)
    assert not second.is_active()
    first.gateway.kill()
    wait_until(second.is_active)
    async with LocalChatClient(second.socket) as chat:
        await chat.send("again", "m2")
        assert await chat.wait_for(1)
    assert second.gateway.stop() == 0


async def test_a_frozen_gateway_that_wakes_gives_up_what_was_taken_over(
    nodes: tuple[Node, Node],
) -> None:
    first, second = nodes
    first.start()
    wait_until(first.is_active)
    second.start()
    first.gateway.send_signal(signal.SIGSTOP)
    try:
        wait_until(second.is_active)
    finally:
        first.gateway.send_signal(signal.SIGCONT)
    wait_until(lambda: not first.is_active())
    async with LocalChatClient(second.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1)
    assert second.gateway.stop() == 0
    wait_until(first.is_active)
