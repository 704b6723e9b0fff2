"""What `import sqlite3` does, as lines of JSON; run with the interpreter's and with the store's.

sqlite_behaviour.py own|interpreter FOLDER
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

kind, folder = sys.argv[1:3]
if kind == "own":
    from hermes_state.engine.sqlite import driver

    driver.install()
import sqlite3  # noqa: E402 - after the driver

file = Path(folder) / f"{kind}.db"
INVALID_TEXT = "SELECT CAST(x'ff41' AS TEXT), 1"
KINDS = (
    "Warning", "InterfaceError", "DataError", "IntegrityError", "InternalError",
    "NotSupportedError", "OperationalError", "ProgrammingError", "DatabaseError", "Error",
)  # fmt: skip


def tell(name, *values):
    sys.stdout.write(json.dumps([name, *values], default=str) + "\n")


def tell_error(name, work, *, with_text=True):
    """The most special class of the DB-API, SQLite's code and the text."""
    try:
        work()
    except sqlite3.Error as error:
        found = next(each for each in KINDS if isinstance(error, getattr(sqlite3, each)))
        code = getattr(error, "sqlite_errorname", None)
        tell(name, found, code, str(error) if with_text else "")
    else:
        tell(name, "no error")


def transactions():
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE)")
        tell("after DDL", db.in_transaction)
        first = db.execute("INSERT INTO t (b) VALUES (?)", ("one",))
        tell("after INSERT", db.in_transaction, first.rowcount, first.lastrowid)
        other = db.execute("  -- comment\n INSERT INTO t (b) VALUES ('two')")
        tell("cursors are independent", first.lastrowid, other.lastrowid)
    tell("committed by with", db.in_transaction, db.execute("SELECT count(*) FROM t").fetchone())
    try:
        with db:
            db.execute("DELETE FROM t")
            raise KeyError("a")
    except KeyError:
        tell("rolled back by with", db.execute("SELECT count(*) FROM t").fetchall())
    many = db.executemany("INSERT INTO t (b) VALUES (?)", ((str(n),) for n in range(5)))
    tell("executemany", many.rowcount, db.total_changes)
    db.rollback()
    db.executescript("INSERT INTO t (b) VALUES ('x'); SELECT * FROM t; DELETE FROM t WHERE a = 1;")
    tell("executescript", db.in_transaction, db.execute("SELECT b FROM t ORDER BY a").fetchall())
    tell("UPDATE", db.execute("UPDATE t SET b = b || '!'").rowcount)
    db.commit()
    with sqlite3.connect(str(file), isolation_level=None) as auto:
        auto.execute("INSERT INTO t (b) VALUES ('auto')")
        tell("autocommit", auto.in_transaction)
    auto.close()
    db.close()


def cursors():
    db = sqlite3.connect(":memory:")
    cursor = db.execute("SELECT 1 AS x, 'a' AS \"y z\" WHERE 0")
    tell("empty", cursor.description, cursor.fetchone(), cursor.fetchall(), cursor.rowcount)
    tell("DDL", db.execute("CREATE TABLE t (a)").description)
    cursor = db.cursor()
    cursor.execute("VALUES (1), (2), (3), (4), (5)")
    tell("mixed", cursor.fetchone(), cursor.fetchmany(2), next(cursor), list(cursor))
    tell("no more", cursor.fetchone(), cursor.fetchmany(), cursor.fetchall())
    tell("types", db.execute("SELECT 1, 1.5, 'é', NULL, x'00ff'").fetchone()[:4])
    tell("blob", list(db.execute("SELECT x'00ff'").fetchone()[0]))
    tell("named", db.execute("SELECT :a + :b", {"a": 1, "b": 2}).fetchone())
    db.row_factory = sqlite3.Row
    row = db.execute("SELECT 1 AS a, 'x' AS Bee").fetchone()
    tell("Row", row["a"], row["BEE"], row[1], row[0:2], row.keys(), len(row), tuple(row))
    tell("Row equality", row == db.execute("SELECT 1 AS a, 'x' AS Bee").fetchone())
    db.row_factory = lambda cursor, row: {cursor.description[0][0]: row[0]}
    tell("row_factory", db.execute("SELECT 7 AS n").fetchall())
    db.row_factory = None
    db.text_factory = bytes
    tell("bytes", db.execute("SELECT 'é', 1, x'41', NULL").fetchall())
    db.text_factory = lambda data: data.decode(errors="replace")
    cursor = db.execute(f"{INVALID_TEXT} AS n ORDER BY 2;")
    tell("lenient", [column[0] for column in cursor.description][1:], list(cursor))
    db.text_factory = str
    tell("strict again", db.execute("SELECT 'é'").fetchall())
    db.close()


def errors():
    db = sqlite3.connect(file)
    tell_error("syntax", lambda: db.execute("SELEC"))
    tell_error("no table", lambda: db.execute("SELECT * FROM nowhere"))
    tell_error("unique", lambda: db.execute("INSERT INTO t (a) SELECT a FROM t"))
    tell_error("mismatch", lambda: db.execute("INSERT INTO t (a) VALUES ('x')"))
    tell_error("too large", lambda: db.execute("SELECT zeroblob(2000000000)").fetchall())
    tell_error("no folder", lambda: sqlite3.connect(file.parent / "no" / "x.db"))
    tell_error("parameters", lambda: db.execute("SELECT ?", ()), with_text=False)
    tell_error("decoding", lambda: db.execute(INVALID_TEXT).fetchone(), with_text=False)
    tell_error("decoding all", lambda: db.execute(INVALID_TEXT).fetchall(), with_text=False)
    tell_error("decoding each", lambda: list(db.execute(INVALID_TEXT)), with_text=False)
    db.rollback()
    db.set_progress_handler(lambda: 1, 1)
    tell_error("interrupted", lambda: db.execute("SELECT count(*) FROM t").fetchall())
    db.set_progress_handler(None, 1)
    reader = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    tell_error("read-only", lambda: reader.execute("DELETE FROM t"))
    reader.close()
    db.execute("BEGIN IMMEDIATE")
    second = sqlite3.connect(file, timeout=0)
    tell_error("locked", lambda: second.execute("BEGIN IMMEDIATE"))
    second.close()
    db.close()
    db.close()
    tell_error("closed", lambda: db.execute("SELECT 1"), with_text=False)
    noise = file.with_suffix(".noise")
    noise.write_bytes(b"not a database, but long enough" * 100)
    db = sqlite3.connect(noise)
    tell_error("no database", lambda: db.execute("SELECT * FROM sqlite_master"))
    db.close()


def functions():
    db = sqlite3.connect(":memory:")
    db.executescript("CREATE TABLE n (a); INSERT INTO n VALUES (1), (2), (3);")
    db.create_function("twice", 1, lambda value: 2 * value, deterministic=True)
    db.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    tell("function", db.execute("SELECT twice(a) FROM n").fetchall())
    sorted_rows = db.execute("SELECT a FROM n ORDER BY CAST(a AS TEXT) COLLATE backwards")
    tell("collation", sorted_rows.fetchall())
    db.close()


def copies():
    db = sqlite3.connect(":memory:")
    db.executescript(
        'CREATE TABLE t (a INTEGER PRIMARY KEY, "b c"); CREATE INDEX i ON t (a);'
        "INSERT INTO t VALUES (1, 'it''s'), (2, x'00ff'), (3, NULL), (4, 1.5);"
    )
    other = sqlite3.connect(":memory:")
    db.backup(other)
    tell("backup", [repr(row) for row in other.execute("SELECT * FROM t")],
         other.execute("SELECT name FROM sqlite_master ORDER BY 1").fetchall())  # fmt: skip
    other.close()
    db.close()


def values():
    sqlite3.register_adapter(complex, lambda value: f"{value.real};{value.imag}")
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE v (d, t, p, n)")
    moment = datetime.datetime.fromisoformat("2026-01-02T03:04:05")
    db.execute("INSERT INTO v VALUES (?, ?, ?, ?)", (moment.date(), moment, 1 + 2j, None))
    tell("adapted", [repr(value) for value in db.execute("SELECT * FROM v").fetchone()])
    tell_error("object", lambda: db.execute("SELECT ?", (object(),)), with_text=False)
    tell("Binary", list(db.execute("SELECT ?", (sqlite3.Binary(b"ab"),)).fetchone()[0]))
    db.close()


for part in (transactions, cursors, errors, functions, copies, values):
    part()
tell("module", sqlite3.apilevel, sqlite3.paramstyle, sqlite3.complete_statement("SELECT 1;"))
