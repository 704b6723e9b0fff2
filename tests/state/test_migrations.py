"""Migrations of own tables: every released layout becomes today's, and loses nothing."""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SchemaTooNewError
from hermes_state import SessionDB
from hermes_state.engine.sqlite import migrator
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.schema.migrations import MIGRATIONS, Migration, layout_of
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

LAYOUTS = sorted((Path(__file__).parent / "layouts").glob("*.db.gz"))
DESCRIPTIONS = {"hermes_layout", "hermes_migration", "hermes_process"}
NOW = 1_790_000_000.0


def unpack(source: Path, folder: Path) -> Path:
    path = folder / "state.db"
    path.write_bytes(gzip.decompress(source.read_bytes()))
    return path


@pytest.fixture(params=LAYOUTS, ids=[path.name.partition(".")[0] for path in LAYOUTS])
def released(request: pytest.FixtureRequest, hermes_home: Path) -> Path:
    """A history as a release left it."""
    return unpack(request.param, hermes_home)


@pytest.fixture
def first_layout(hermes_home: Path) -> Path:
    return unpack(LAYOUTS[0], hermes_home)


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def schema(path: Path) -> dict[str, str]:
    rows = query(path, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): re.sub(r"\s+", " ", str(sql)) for name, sql in rows}


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    tables = query(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        str(name): sorted(query(path, f"SELECT * FROM {name}"), key=repr)
        for (name,) in tables
        if name not in DESCRIPTIONS
    }


def layout(path: Path) -> dict[str, str]:
    return dict(query(path, "SELECT name, value FROM hermes_layout"))  # type: ignore[arg-type]


def test_a_released_layout_becomes_todays(released: Path, tmp_path: Path) -> None:
    SessionDB(tmp_path / "new.db").close()
    SessionDB(released).close()
    assert schema(released) == schema(tmp_path / "new.db")
    assert layout(released)["layout"] == str(layout_of(MIGRATIONS))


def test_an_upgrade_changes_no_row(released: Path) -> None:
    with closing(sqlite3.connect(released, isolation_level=None)) as connection:
        # Daily house-keeping is not due, whenever the test runs.
        connection.execute(
            "UPDATE state_meta SET value = ? WHERE key = 'last_auto_prune'", (str(time.time()),)
        )
    before = contents(released)
    assert ("last_auto_prune",) in [row[:1] for row in before["state_meta"]]
    SessionDB(released).close()
    after = contents(released)
    assert {name: after[name] for name in before} == before
    assert all(after[name] == [] for name in after.keys() - before.keys())
    assert len(before["messages"]) >= 7


def test_an_upgraded_history_is_used_on(released: Path) -> None:
    with SessionDB(released) as db:
        assert db.get_session_title("first") == "A first conversation"
        assert db.tags.tags_of(["first"]) == {"first": ["two words", "Work"]}
        assert [row.payload["text"] for row in [db.inbox.claim()] if row] == ["message 2"]
        assert db.pairings.is_allowed("telegram", "7")
        db.append_message("branch", "user", "one more")
        assert db.get_messages("branch")[-1]["content"] == "one more"


def test_a_migration_is_recorded_and_runs_once(released: Path) -> None:
    SessionDB(released).close()
    records = query(released, "SELECT number, name, applied_at, position FROM hermes_migration")
    assert [record[:2] for record in records] == [(each.number, each.name) for each in MIGRATIONS]
    assert all(isinstance(record[2], float) and record[3] is None for record in records)
    SessionDB(released).close()
    again = query(released, "SELECT number, name, applied_at, position FROM hermes_migration")
    assert again == records


def test_an_index_that_a_later_release_added_is_created(first_layout: Path) -> None:
    with closing(sqlite3.connect(first_layout, isolation_level=None)) as connection:
        connection.execute("DROP INDEX hermes_inbox_next")
        connection.execute("CREATE INDEX hermes_outbox_unsettled ON hermes_outbox(state)")
    SessionDB(first_layout).close()
    assert "hermes_inbox_next" in schema(first_layout)
    assert "hermes_outbox_unsettled" not in schema(first_layout)


def test_a_breaking_migration_keeps_older_releases_out(first_layout: Path) -> None:
    breaking = Migration(
        99, "a column", ("ALTER TABLE hermes_tag ADD COLUMN color TEXT",), is_readable_before=False
    )
    with closing(sqlite3.connect(first_layout, isolation_level=None)) as connection:
        migrator.migrate(connection, NOW, (*MIGRATIONS, breaking))
    assert (layout(first_layout)["layout"], layout(first_layout)["readable_by"]) == ("99", "99")
    before = first_layout.read_bytes()
    for read_only in (False, True):
        with pytest.raises(SchemaTooNewError, match=r"newer release of Hermes \(layout 99, this"):
            SessionDB(first_layout, read_only=read_only)
    assert first_layout.read_bytes() == before


def test_a_compatible_newer_layout_stays_recorded(first_layout: Path) -> None:
    newer = Migration(99, "a table", ("CREATE TABLE hermes_more (name TEXT)",))
    with closing(sqlite3.connect(first_layout, isolation_level=None)) as connection:
        migrator.migrate(connection, NOW, (*MIGRATIONS, newer))
    with SessionDB(first_layout) as db:
        db.append_message("branch", "user", "written by an older release")
    assert (layout(first_layout)["layout"], layout(first_layout)["readable_by"]) == ("99", "1")


# Migrations that change many rows

ROWS = 400
SLICE = 7
FILLING = """
import sys, time
from pathlib import Path
from contextlib import closing
from state.test_migrations import COUNTING
from hermes_state import SessionDB
from hermes_state.engine.sqlite import migrator
with SessionDB(Path(sys.argv[1]), is_recovering=False) as db:
    while db.engine.read(lambda reader: migrator.unfinished(reader, COUNTING)):
        db.engine.write(lambda tx: migrator.fill_slice(tx, COUNTING[-1]))
        print("slice", flush=True)
        time.sleep(0.01)
"""


def count_slice(tx: Tx, position: str) -> str | None:
    """Count the visits of each row of a slice."""
    last = int(position or 0) + SLICE
    tx.execute("UPDATE hermes_counted SET visits = visits + 1 WHERE id > ? AND id <= ?",
               (int(position or 0), last))  # fmt: skip
    return str(last) if last < ROWS else None


COUNTING = (
    *MIGRATIONS,
    Migration(
        99,
        "count",
        ("CREATE TABLE IF NOT EXISTS hermes_counted (id INTEGER PRIMARY KEY, visits INTEGER)",),
        fill=count_slice,
    ),
)


def test_a_long_migration_goes_on_after_kill_9(first_layout: Path) -> None:
    with closing(sqlite3.connect(first_layout, isolation_level=None)) as connection:
        migrator.migrate(connection, NOW, COUNTING)
        connection.executemany(
            "INSERT INTO hermes_counted VALUES (?, 0)", [(n,) for n in range(1, ROWS + 1)]
        )
    command = [sys.executable, "-c", FILLING, str(first_layout)]
    kills = 0
    while True:
        with subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(5 + kills):
                process.stdout.readline()
            if kills < 3:
                process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)
        if process.returncode == 0:
            break
        kills += 1
        filled = query(first_layout, "SELECT sum(visits), max(visits) FROM hermes_counted")
        assert 0 < int(str(filled[0][0])) < ROWS
        assert filled[0][1] == 1
    assert kills == 3
    assert query(first_layout, "SELECT min(visits), max(visits) FROM hermes_counted") == [(1, 1)]
    assert query(first_layout, "SELECT position FROM hermes_migration WHERE number = 99") == [
        (None,)
    ]


def test_rows_are_filled_in_the_background(
    first_layout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(first_layout, isolation_level=None)) as connection:
        migrator.migrate(connection, NOW, COUNTING)
        connection.executemany(
            "INSERT INTO hermes_counted VALUES (?, 0)", [(n,) for n in range(1, ROWS + 1)]
        )
    monkeypatch.setattr(migrator.unfinished, "__defaults__", (COUNTING,))
    with SessionDB(first_layout):
        sql = "SELECT count(*) FROM hermes_counted WHERE visits = 1"
        wait_until(lambda: query(first_layout, sql) == [(ROWS,)])
