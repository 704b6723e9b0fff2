"""Fixtures: stores of every file format that a user may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from state.foreign_files import make_schema_16, make_schema_26

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POSTGRES = "postgresql"
MAKERS = {"new file": None, "schema 16": make_schema_16, "schema 26": make_schema_26}


# For tests of what only a file has: another program that writes, or SQLite itself.
FILES_ONLY = pytest.mark.parametrize("db_path", list(MAKERS), indirect=True)


class OpenStore(Protocol):
    def __call__(self, **options: object) -> SessionDB: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=[*MAKERS, POSTGRES])
def db_path(
    request: pytest.FixtureRequest, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The path of a store: no file yet, one of hermes-agent, or a database instead of it."""
    path = hermes_home / "state.db"
    if request.param == POSTGRES:
        with request.getfixturevalue("postgres").history() as url:
            monkeypatch.setenv("HERMES_STORE_URL", url)
            yield path
        return
    maker = MAKERS[request.param]
    if maker is not None:
        maker(path)
    yield path


@pytest.fixture
def open_store(db_path: Path, clock: ManualClock) -> Iterator[OpenStore]:
    """Open the store; stores that a test leaves open are closed after it."""
    opened: list[SessionDB] = []

    def open_new(**options: object) -> SessionDB:
        store = SessionDB(db_path, clock=clock, **options)
        opened.append(store)
        return store

    yield open_new
    for store in opened:
        store.close()


@pytest.fixture
def db(open_store: OpenStore) -> SessionDB:
    return open_store()


@pytest.fixture
def session(db: SessionDB) -> str:
    return db.create_session("20260101_120000_aaaaaa", "cli", model="m-1", cwd="/home/me/project")
