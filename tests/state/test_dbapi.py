"""The store's `sqlite3` behaves like the standard library's."""

from __future__ import annotations

import gc
import importlib.machinery
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from hermes_state.engine.database import DriverError
from hermes_state.engine.sqlite import dbapi
from hermes_state.engine.sqlite.driver import sqlite3

COUNTING = (
    "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 1000000)"
    " SELECT value FROM n"
)
PROGRAM = Path(__file__).with_name("sqlite_behaviour.py")


def behaviour(kind: str, folder: Path) -> dict[str, list[object]]:
    """What the program tells, by name; in a process of its own, which loads one SQLite."""
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", str(PROGRAM), kind, str(folder)],
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return {name: values for name, *values in map(json.loads, done.stdout.splitlines())}


def test_it_behaves_like_the_standard_library(tmp_path: Path) -> None:
    if importlib.machinery.PathFinder.find_spec("_sqlite3", sys.path) is None:
        pytest.skip("this Python was built without sqlite3")
    own = behaviour("own", tmp_path)
    assert own == behaviour("interpreter", tmp_path)
    assert len(own) >= 44


def test_a_connection_closes_its_open_cursors(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    cursors = [
        connection.execute("VALUES (1), (2)"),
        connection.cursor().execute("VALUES (1), (2)"),
    ]
    assert [cursor.fetchone() for cursor in cursors] == [(1,), (1,)]
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError):
        cursors[0].fetchone()


def test_threads_that_share_a_connection_wait_for_each_other(tmp_path: Path) -> None:
    """The standard library does so, with occasional errors under load."""
    with closing(sqlite3.connect(tmp_path / "a.db", check_same_thread=False)) as connection:
        connection.execute("CREATE TABLE t (a)")

        def work() -> None:
            for number in range(200):
                connection.execute("INSERT INTO t VALUES (?)", (number,))
                connection.execute("SELECT count(*) FROM t").fetchone()
                list(connection.execute("SELECT * FROM t LIMIT 5"))

        with ThreadPoolExecutor(4) as pool:
            for result in [pool.submit(work) for _ in range(4)]:
                result.result()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (800,)


def test_cursors_can_be_released_while_another_thread_uses_the_connection() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    held = [connection.execute("VALUES (1), (2)") for _ in range(50)]
    classes = [sqlite3.Cursor, type(held[0])]
    counts = [sys.getrefcount(each) for each in classes]
    is_running = threading.Event()
    connection.create_function("report", 0, is_running.set)
    long_query = "SELECT report() UNION ALL SELECT max(value) FROM (" + COUNTING + ")"
    with closing(connection), ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: connection.execute(long_query).fetchall())
        assert is_running.wait(60)
        held.clear()
        assert done.result()[1] == (1_000_000,)
    gc.collect()
    assert all(sys.getrefcount(each) > 3 for each in classes), counts


def test_a_file_name_that_is_not_utf_8_is_opened(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9?#%.db"
    with closing(sqlite3.connect(name)) as connection:
        connection.execute("CREATE TABLE t (a)")
    assert b"caf\xe9?#%.db" in os.listdir(os.fsencode(tmp_path))  # noqa: PTH208 - bytes


def test_a_pragma_is_not_run_again_for_its_description() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        cursor = connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        assert cursor.description is None
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (0,)


def test_a_statement_with_a_limit_is_prepared_once() -> None:
    prepared: list[object] = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE message (text)")
        # SQLite asks the authorizer whenever it prepares a statement.
        connection.authorizer = lambda *step: prepared.append(step) or 0
        sql = "SELECT text FROM message ORDER BY text LIMIT ?"
        connection.execute(sql, (1,)).fetchall()
        assert prepared
        prepared.clear()
        connection.execute(sql, (2,)).fetchall()
    assert prepared == []


def test_every_error_of_apsw_becomes_one_of_the_database() -> None:
    classes = [each for each in vars(apsw).values() if isinstance(each, type)]
    errors = [each for each in classes if issubclass(each, apsw.Error)]
    assert len(errors) > 30
    for kind in errors:
        assert isinstance(dbapi.to_error(kind("text")), sqlite3.Error)
    codes = set(range(apsw.SQLITE_ERROR, apsw.SQLITE_NOTADB + 1))
    for code in codes:
        error = dbapi.to_error(apsw.exception_for(code))
        assert (error.sqlite_errorcode, isinstance(error, DriverError)) == (code, True)


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(sqlite3.NotSupportedError):
        sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    with pytest.raises(sqlite3.NotSupportedError):
        sqlite3.register_converter("day", bytes.decode)  # libraries import the name


def test_an_abandoned_cursor_ends_its_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS c UNION SELECT 'b'")
        connection.text_factory = lambda data: data.decode(errors="replace")
        gc.disable()
        try:
            assert connection.execute("SELECT c FROM t").fetchone() == ("a",)
            assert connection.txn_state() == apsw.SQLITE_TXN_NONE
        finally:
            gc.enable()
