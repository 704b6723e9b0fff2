"""A plugin that reaches past the store, in the store's own process.

hostile.py REPORT DATABASE
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from reporting import Report

from hermes_core.errors import ForeignAccessError
from hermes_state import SessionDB

report = Report()
database = Path(sys.argv[2])
elsewhere = database.parent / "elsewhere"


def interpreters_own_sqlite():
    """The interpreter's copy, as a plugin gets it that is determined to."""
    spec = importlib.machinery.PathFinder.find_spec("_sqlite3")
    if spec is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest() -> None:
    with database.open("rb") as stream:
        hashlib.file_digest(stream, "sha256")


def by_link() -> None:
    elsewhere.symlink_to(database)
    elsewhere.open("rb").close()


def by_second_name() -> None:
    second = database.parent / "second"
    os.link(database, second)
    second.open("rb").close()


def put_in_place() -> None:
    other = database.parent / "backup.db"
    other.write_bytes(b"")
    other.replace(database)


ATTEMPTS = {
    "open": lambda: database.open("rb").close(),
    "open for writing": lambda: database.open("r+b").close(),
    "open by bytes": lambda: open(os.fsencode(database), "rb").close(),  # noqa: PTH123
    "open relative": lambda: open(os.path.relpath(database), "rb").close(),  # noqa: PTH123
    "os.open": lambda: os.close(os.open(database, os.O_RDONLY)),
    "copy": lambda: shutil.copy(database, database.parent / "copy.db"),
    "copy of the log": lambda: shutil.copy(f"{database}-wal", database.parent / "copy.db-wal"),
    "digest": digest,
    "remove": database.unlink,
    "remove the log": Path(f"{database}-wal").unlink,
    "rename": lambda: database.rename(database.parent / "old.db"),
    "truncate": lambda: os.truncate(database, 0),
    "through a link": by_link,
    "through a second name": by_second_name,
    "put another file in its place": put_in_place,
}

db = SessionDB(database)
db.create_session("one", "cli")
db.append_message("one", "user", "hello")

own = interpreters_own_sqlite()
if own is None:
    report.write("skipped", name="the interpreter's sqlite")
else:
    escaped = "".join(f"%{byte:02X}" for byte in os.fsencode(database))
    for name, address, options in (
        ("the interpreter's sqlite", str(database), {}),
        ("the interpreter's sqlite by address", f"file:{database}?mode=ro", {"uri": True}),
        ("the interpreter's sqlite by long address", f"file://{database}", {"uri": True}),
        ("the interpreter's sqlite by host", f"file://localhost{database}", {"uri": True}),
        ("the interpreter's sqlite by escapes", f"file:{escaped}", {"uri": True}),
    ):
        ATTEMPTS[name] = lambda address=address, options=options: own.connect(address, **options)

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
    except ForeignAccessError as error:
        report.write("refused", name=name, text=str(error))
    except Exception as error:  # noqa: BLE001 - reported and checked by the test
        report.write("failed", name=name, text=repr(error))
    else:
        report.write("got through", name=name)

# The store still works, and other files are not affected.
(database.parent / "notes.txt").write_text("mine")
report.write("alive", row=db.append_message("one", "user", "still here"))
