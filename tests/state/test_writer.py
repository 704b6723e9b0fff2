"""Acknowledged writes are on disk, also with concurrent writers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import HermesError, StoreError
from hermes_state import SessionDB
from hermes_state.engine.sqlite import transaction
from hermes_state.engine.sqlite.driver import sqlite3
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(hermes_home: Path):
    with SessionDB(hermes_home / "state.db") as db:
        db.create_session("s", "cli")
        yield db


def in_threads(count: int, work) -> None:
    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_many_threads_share_commits_and_lose_nothing(store: SessionDB) -> None:
    def work(number: int) -> None:
        for step in range(50):
            assert store.append_message("s", "user", f"{number}:{step}") > 0

    in_threads(16, work)
    texts = [m["content"] for m in store.get_messages("s")]
    assert len(texts) == 800
    for number in range(16):
        own_texts = [t for t in texts if t.startswith(f"{number}:")]
        assert own_texts == [f"{number}:{step}" for step in range(50)]


def test_a_failing_job_of_a_group_rolls_back_only_itself(store: SessionDB) -> None:
    outcomes: dict[int, object] = {}

    def work(number: int) -> None:
        try:
            target = "nowhere" if number % 3 == 0 else "s"
            outcomes[number] = store.append_message(target, "user", str(number))
        except HermesError as error:
            outcomes[number] = error

    for _ in range(10):
        outcomes.clear()
        in_threads(12, work)
        for number, outcome in outcomes.items():
            assert isinstance(outcome, Exception) == (number % 3 == 0)
    assert len(store.get_messages("s")) == 80


def test_the_writes_of_a_failed_job_are_not_committed_with_its_group(store: SessionDB) -> None:
    queue, is_writing = store.engine.writer()._queue, threading.Event()
    errors: list[str] = []

    def wait_for_group(_tx) -> None:
        is_writing.set()
        wait_until(lambda: len(queue) >= 3)

    def rename_and_fail(tx) -> None:
        tx.run("UPDATE sessions SET title = 'half done' WHERE id = 's'")
        raise ValueError("after the first statement")

    def work(number: int) -> None:
        is_writing.wait(60)
        if number:
            store.append_message("s", "user", str(number))
            return
        try:
            store.engine.write(rename_and_fail)
        except ValueError as error:
            errors.append(str(error))

    first = threading.Thread(target=store.engine.write, args=(wait_for_group,))
    first.start()
    in_threads(3, work)
    first.join(60)
    assert errors == ["after the first statement"]
    assert store.get_session("s")["title"] is None
    assert {message["content"] for message in store.get_messages("s")} == {"1", "2"}


# The upkeep of the store may write meanwhile, and gets the error, too.
@pytest.mark.filterwarnings("ignore:Exception in thread hermes-upkeep")
def test_every_job_of_a_group_that_cannot_be_committed_gets_the_error(
    store: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, is_writing = store.engine.writer()._queue, threading.Event()
    errors: list[str] = []

    def fail(_tx) -> None:
        raise RecursionError("before the commit")

    def wait_for_group(_tx) -> None:
        is_writing.set()
        wait_until(lambda: len(queue) >= 3)
        monkeypatch.setattr(transaction, "before_commit", fail)

    def work(number: int) -> None:
        is_writing.wait(60)
        try:
            store.append_message("s", "user", str(number))
        except RecursionError as error:
            errors.append(str(error))

    first = threading.Thread(target=work_ignoring, args=(store, wait_for_group), daemon=True)
    first.start()
    in_threads(3, work)
    first.join(60)
    assert errors == ["before the commit"] * 3
    monkeypatch.undo()
    assert store.append_message("s", "user", "later") > 0
    assert [message["content"] for message in store.get_messages("s")] == ["later"]


def work_ignoring(store: SessionDB, work) -> None:
    with contextlib.suppress(RecursionError):
        store.engine.write(work)


def test_a_write_that_waits_beside_a_vacuum_is_done_once(store: SessionDB) -> None:
    queue, is_writing = store.engine.writer()._queue, threading.Event()
    store.append_message("s", "user", "text")

    def wait_for_group(_tx) -> None:
        is_writing.set()
        wait_until(lambda: len(queue) >= 3)

    def lengthen(tx) -> None:
        tx.run("UPDATE sessions SET title = coalesce(title, '') || 'x' WHERE id = 's'")

    def fail(_tx) -> None:
        raise ValueError

    def work(number: int) -> None:
        is_writing.wait(60)
        wait_until(lambda: len(queue) >= number)  # in this order
        if number == 1:
            store.vacuum()
            return
        with contextlib.suppress(ValueError):
            store.engine.write(fail if number else lengthen)

    first = threading.Thread(target=store.engine.write, args=(wait_for_group,))
    first.start()
    in_threads(3, work)
    first.join(60)
    assert store.get_session("s")["title"] == "x"


def test_an_acknowledged_write_is_visible_to_another_process(
    store: SessionDB, hermes_home: Path
) -> None:
    store.append_message("s", "user", "hello")
    program = (
        "import sys; from hermes_state.engine.sqlite import driver; driver.install();"
        "from hermes_state import SessionDB;"
        "print(SessionDB(sys.argv[1], read_only=True).get_messages('s')[0]['content'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(hermes_home / "state.db")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "hello"


def test_the_writer_uses_a_log_that_survives_power_failures(store: SessionDB) -> None:
    settings = store.engine.write(
        lambda tx: (tx.value("PRAGMA journal_mode"), tx.value("PRAGMA synchronous"))
    )
    assert settings == ("wal", 2)


def test_readers_cannot_write(store: SessionDB) -> None:
    with pytest.raises(StoreError):
        store.engine.read(lambda reader: reader.rows("DELETE FROM messages"))


def test_a_write_inside_a_write_is_refused_not_deadlocked(store: SessionDB) -> None:
    errors: list[BaseException] = []

    def work(_number: int) -> None:
        try:
            store.engine.write(lambda _tx: store.append_message("s", "user", "nested"))
        except StoreError as error:
            errors.append(error)

    in_threads(1, work)
    assert "inside a write" in str(errors[0])
    store.append_message("s", "user", "still works")


def test_a_signal_handler_that_writes_does_not_deadlock(store: SessionDB) -> None:
    stored: list[int] = []
    signal.signal(signal.SIGUSR1, lambda *_: stored.append(store.append_message("s", "user", "h")))
    try:
        for number in range(30):
            timer = threading.Timer(0.0005, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            store.append_message("s", "user", str(number))
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert len(stored) == 30
    assert len(store.get_messages("s")) == 60


def test_ctrl_c_in_a_write_leaves_a_working_store(store: SessionDB) -> None:
    interrupted = 0
    for number in range(30):
        timer = threading.Timer(0.0003, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            store.append_message("s", "user", str(number))
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
    assert interrupted > 0
    store.append_message("s", "user", "after")
    assert store.get_messages("s")[-1]["content"] == "after"


def test_a_forked_child_must_reopen_the_store(store: SessionDB) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            store.append_message("s", "user", "from the child")
        except StoreError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_stores_of_one_process_share_one_writer(store: SessionDB, hermes_home: Path) -> None:
    link = hermes_home / "link.db"
    link.symlink_to(hermes_home / "state.db")
    with SessionDB(link) as other:
        assert other.engine is store.engine
    store.append_message("s", "user", "the first one is still open")


def test_a_closed_store_raises_an_error(hermes_home: Path) -> None:
    db = SessionDB(hermes_home / "other.db")
    db.create_session("s", "cli")
    db.close()
    db.close()
    with pytest.raises(StoreError, match="closed"):
        db.append_message("s", "user", "x")


def test_a_read_only_store_refuses_to_write(store: SessionDB, hermes_home: Path) -> None:
    with SessionDB(hermes_home / "state.db", read_only=True) as reader:
        with pytest.raises(StoreError, match="reading only"):
            reader.create_session("x", "cli")
        assert reader.get_session("s") is not None


def test_a_long_read_does_not_block_writers(store: SessionDB, hermes_home: Path) -> None:
    for number in range(100):
        store.append_message("s", "user", str(number))
    with closing(sqlite3.connect(hermes_home / "state.db")) as other:
        cursor = other.execute("SELECT * FROM messages")
        cursor.fetchone()
        assert store.append_message("s", "user", "meanwhile") > 0


def test_a_thread_returns_when_its_own_write_is_on_disk_however_many_others_write(
    store: SessionDB,
) -> None:
    queue = store.engine.writer()._queue
    is_leading, has_returned = threading.Event(), threading.Event()
    outcomes: list[bool] = []

    def wait_for_another(_tx) -> None:
        is_leading.set()
        wait_until(lambda: queue)

    def lead() -> None:
        store.engine.write(wait_for_another)
        has_returned.set()

    def follow() -> None:
        outcomes.append(store.engine.write(lambda _tx: has_returned.wait(10)))

    threads = [threading.Thread(target=lead), threading.Thread(target=follow)]
    for thread in threads:
        thread.start()
        assert is_leading.wait(PATIENCE_SECONDS)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert outcomes == [True]
