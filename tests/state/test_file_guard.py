"""Direct access to the files of an open store is refused."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_core.errors import ForeignAccessError, SqliteTooOldError
from hermes_state import SessionDB
from hermes_state.engine.sqlite import driver
from hermes_state.upkeep.health import sqlite_copies


@pytest.fixture
def path(hermes_home: Path):
    db_path = hermes_home / "state.db"
    with SessionDB(db_path) as db:
        db.create_session("s", "cli")
        yield db_path


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_opening_the_files_is_refused(path: Path, suffix: str) -> None:
    target = str(path) + suffix
    for access in (
        lambda: open(target, "rb"),  # noqa: PTH123, SIM115
        lambda: os.open(target, os.O_RDONLY),
        lambda: Path(target).read_bytes(),
        lambda: open(os.fsencode(target), "rb"),  # noqa: PTH123, SIM115
        lambda: shutil.copyfile(target, str(path) + ".copy"),
        lambda: Path(target).unlink(),
    ):
        with pytest.raises(ForeignAccessError, match="drop its locks"):
            access()


def test_relative_and_linked_paths_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    link = path.parent / "state.db-wal"
    assert link.exists()
    with pytest.raises(ForeignAccessError):
        Path("state.db").read_bytes()
    with pytest.raises(ForeignAccessError):
        hashlib.sha256(Path("../hermes-home/state.db").read_bytes())


def test_other_files_of_the_same_name_are_accessible(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "state.db"
    other.write_text("mine")
    assert other.read_text() == "mine"


def test_the_files_of_a_closed_store_are_accessible(hermes_home: Path) -> None:
    db_path = hermes_home / "other.db"
    SessionDB(db_path).close()
    assert db_path.read_bytes().startswith(b"SQLite format 3")


def test_the_interpreters_own_sqlite_cannot_open_the_store(path: Path) -> None:
    spec = importlib.machinery.PathFinder.find_spec("_sqlite3", sys.path)
    if spec is None or spec.loader is None or spec.origin is None:
        pytest.skip("this Python was built without sqlite3")
    # In a process of its own: a second copy must not be loaded into the test process.
    program = f"""
import sys, importlib.util
from hermes_state.engine.sqlite import driver; driver.install()
from hermes_state import SessionDB
from hermes_state.upkeep.health import sqlite_copies
from hermes_core.errors import ForeignAccessError
db = SessionDB({str(path.parent / "second.db")!r})
import sqlite3, _sqlite3
assert len(sqlite_copies()) == 1, sqlite_copies()
spec = importlib.util.spec_from_file_location("_sqlite3", {spec.origin!r})
foreign = importlib.util.module_from_spec(spec)
spec.loader.exec_module(foreign)
assert len(sqlite_copies()) == 2, sqlite_copies()
for address in ({str(path.parent / "second.db")!r}, "file:" + {str(path.parent / "second.db")!r}):
    try:
        foreign.connect(address, uri=address.startswith("file:"))
    except ForeignAccessError:
        continue
    sys.exit("the foreign copy opened the store")
foreign.connect(":memory:").close()
print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr


def test_a_plugin_that_imports_sqlite3_gets_the_sqlite_of_the_store(path: Path) -> None:
    import sqlite3  # noqa: PLC0415 - as a plugin does

    assert sqlite3.sqlite_version_info >= (3, 51, 3)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    connection.close()
    assert len(sqlite_copies()) <= 1


@pytest.mark.parametrize(
    ("version", "is_safe"),
    [
        ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 50, 4), False),
        ((3, 50, 7), True), ((3, 51, 2), False), ((3, 51, 3), True), ((3, 53, 4), True),
    ],
)  # fmt: skip
def test_releases_that_corrupt_files_are_refused(version: tuple[int, ...], is_safe: bool) -> None:
    assert driver.is_safe_version(version) is is_safe
    if not is_safe:
        with pytest.raises(SqliteTooOldError, match=r"3\.51\.3"):
            driver.check_version(version)
