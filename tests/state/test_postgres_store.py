"""What a history in PostgreSQL does differently from one in a file."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from hermes_core.errors import LeaseLostError
from hermes_state import SessionDB
from hermes_state.engine.postgres.errors import PostgresError
from hermes_state.engine.postgres.writer import BEGIN
from hermes_state.engine.postgres.writer import _begin as begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.engine.transaction import Tx
    from support.postgres import PostgresServer

NOTE = "INSERT INTO state_meta (key, value) VALUES (?, ?)"


@pytest.fixture
def db(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionDB]:
    with postgres.history() as url:
        monkeypatch.setenv("HERMES_STORE_URL", url)
        with SessionDB() as store:
            yield store


def test_a_deferred_write_survives_a_write_that_fails(db: SessionDB) -> None:
    def fail(_tx: object) -> None:
        raise LeaseLostError("gone")

    db.engine.write_soon(lambda tx: tx.run(NOTE, ("soon", "1")), "add a note")
    with pytest.raises(LeaseLostError):
        db.engine.write(fail)
    db.engine.flush()
    assert db.get_meta("soon") == "1"


def test_a_deferred_write_that_fails_does_not_stop_others(
    db: SessionDB, caplog: pytest.LogCaptureFixture
) -> None:
    db.engine.write_soon(lambda tx: tx.run("INSERT INTO nowhere VALUES (1)"), "a wrong note")
    db.engine.write_soon(lambda tx: tx.run(NOTE, ("soon", "1")), "add a note")
    db.engine.flush()
    assert db.get_meta("soon") == "1"
    assert "a wrong note failed" in caplog.text


def test_words_of_a_purged_conversation_are_removed_from_the_index(db: SessionDB) -> None:
    for session, text in (("s1", "shared xylophone"), ("s2", "shared zither")):
        db.create_session(session, "cli")
        db.append_message(session, "user", text)
    db.search.fill()
    db.trash.purge("s1")
    rows = db.engine.read(lambda r: r.rows("SELECT term FROM hermes_search_term ORDER BY term"))
    assert [term for (term,) in rows] == ["shared", "zither"]
    assert not db.search_messages("xylophone")


def test_a_message_is_found_before_it_is_indexed(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", "恢复 the lighthouse")
    monkeypatch.setattr("hermes_state.search.postgres.CATCH_UP_SECONDS", -1.0)
    for query in ("lighthouse", "恢复", "light*", '"the lighthouse"'):
        assert len(db.search_messages(query)) == 1, query
    assert db.search.progress() == (0, 1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("lighthouse", {1}), ("light*", {1, 2}), ('"over the"', {1}), ("恢", {3}), ("恢复", {3}),
        ("复恢", set()), ("lighthouse OR lightning", {1, 2}), ("the -lighthouse", {2}),
        ("中文", {3}), ("nothing", set()),
    ],
)  # fmt: skip
def test_searches_find_the_same_as_in_a_file(db: SessionDB, query: str, found: set[int]) -> None:
    db.create_session("s", "cli")
    for text in ("Over the lighthouse", "The lightning", "恢复中文"):
        db.append_message("s", "user", text)
    db.search.fill()
    assert {hit["id"] for hit in db.search_messages(query)} == found


def test_parts_of_words_are_found(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", "the lighthouse keeper")
    db.search.fill()
    for piece in ("ightho", "ho", "ouse keep"):
        assert len(db.search_messages(piece, inside_words=True)) == 1, piece


def test_the_outcome_of_a_lost_commit_waits_for_the_transaction(
    db: SessionDB, postgres: PostgresServer
) -> None:
    writer = db.engine.writer()
    connect = db.engine.database._connect
    lost, other = connect(), connect()
    begin(lost, BEGIN)  # the first transaction of this connection, not committed yet
    outcome: list[bool] = []
    asking = threading.Thread(target=lambda: outcome.append(writer._is_committed(lost)))
    asking.start()
    asking.join(0.3)
    assert asking.is_alive()
    lost.execute("COMMIT")
    asking.join()
    assert outcome == [True]
    begin(other, BEGIN)
    other.execute("ROLLBACK")
    assert not writer._is_committed(other)
    for connection in (lost, other):
        connection.close()


def test_marks_of_connections_that_are_long_gone_are_removed(db: SessionDB) -> None:
    add = """
        INSERT INTO hermes_commit (connection_id, transaction_number, changed_at)
        VALUES (?, 1, now() - CAST(? AS INTERVAL))
    """
    for name, age in (("old", "2 days"), ("recent", "1 hour")):
        db.engine.write(lambda tx, row=(name, age): tx.run(add, row))
    db.close()
    with SessionDB() as again:
        names = again.engine.read(lambda r: r.rows("SELECT connection_id FROM hermes_commit"))
    assert "recent" in {name for (name,) in names}
    assert "old" not in {name for (name,) in names}


LEASE_PLAN = "EXPLAIN SELECT token FROM hermes_lease WHERE session_id = ?"
SMALL_BUDGET_SECONDS = 0.05


def test_no_write_locks_a_small_table_by_reading_all_of_it(db: SessionDB) -> None:
    db.create_session("s", "cli")
    lease = db.leases.acquire("s")
    db.engine.write(lambda tx: tx.update_planner())

    def read_plan(tx: Tx) -> str:
        return "\n".join(str(row[0]) for row in tx.rows(LEASE_PLAN, ("s",)))

    for _ in range(10):  # a prepared statement gets a plan for all parameters meanwhile
        assert "Seq Scan" in db.engine.read(read_plan)  # type: ignore[arg-type]
        assert "Seq Scan" not in db.engine.write(read_plan)
        assert "Seq Scan" not in db.engine.write(read_plan, is_conditional=True)
    db.leases.release(lease)


def fail_first(*failures: psycopg.Error | float) -> Callable[[Tx], None]:
    """Work that waits and fails as given, then succeeds."""
    left = list(failures)

    def work(_tx: Tx) -> None:
        while left:
            failure = left.pop(0)
            if isinstance(failure, psycopg.Error):
                raise PostgresError(failure)
            time.sleep(failure)

    return work


@pytest.fixture
def impatient(db: SessionDB) -> None:
    db.engine.writer()._busy_seconds = SMALL_BUDGET_SECONDS  # type: ignore[attr-defined]


@pytest.mark.usefixtures("impatient")
def test_a_conflict_after_a_long_reconnection_is_repeated(db: SessionDB) -> None:
    conflict = psycopg.errors.SerializationFailure("a conflict")
    lost = psycopg.OperationalError("the connection is lost")
    db.engine.write(fail_first(lost, 2 * SMALL_BUDGET_SECONDS, conflict, conflict))


@pytest.mark.usefixtures("impatient")
def test_an_answer_is_stored_when_a_long_conflict_is_over(db: SessionDB) -> None:
    db.create_session("s", "cli")
    lease = db.leases.acquire("s")
    draft = db.messages.draft("s", lease=lease)
    draft.write("finished and paid for")
    conflict = psycopg.errors.SerializationFailure("a conflict")
    draft.finish(also=[fail_first(*[conflict, 2 * SMALL_BUDGET_SECONDS] * 20)])
    assert [message["content"] for message in db.get_messages("s")] == ["finished and paid for"]
