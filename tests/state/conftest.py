"""Fixtures: stores of every file format that a user may have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from state.foreign_files import make_schema_16, make_schema_26
from support.postgres import IS_ON_POSTGRES

if TYPE_CHECKING:
    from collections.abc import Iterator

POSTGRES = "postgresql"
MAKERS = {"new file": None, "schema 16": make_schema_16, "schema 26": make_schema_26}


# For tests of what only a file has: another program that writes, or SQLite itself.
FILES_ONLY = pytest.mark.parametrize("db_path", list(MAKERS), indirect=True)


def is_selected(item: pytest.Item) -> bool:
    """Whether this run includes a test of this folder.

    `make test-engines` runs each test that can use PostgreSQL on it; every other run only the
    tests marked `engines`.
    """
    callspec = getattr(item, "callspec", None)
    if callspec is not None and callspec.params.get("db_path") == POSTGRES:
        return IS_ON_POSTGRES or item.get_closest_marker("engines") is not None
    return not IS_ON_POSTGRES


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder that belong to another run."""
    folder = Path(__file__).parent
    left_out = [
        item for item in items if item.path.is_relative_to(folder) and not is_selected(item)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        excluded = set(left_out)
        items[:] = [item for item in items if item not in excluded]


@pytest.fixture(autouse=True)
def engine_of_history() -> None:
    """Set no engine here: `db_path` does."""


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
        with request.getfixturevalue("postgres").prepared_history() as url:
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
