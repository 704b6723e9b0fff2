"""A made-up history is the same every time, and holds together as a real one does."""

from __future__ import annotations

import statistics
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.upkeep import health
from history import PRESETS, Size, make, size_in_bytes
from history.plan import session_lengths
from state.foreign_files import schema_of

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS, MESSAGES = 60, 1_500
KINDS = ("native", "schema16", "schema26")
BROKEN_COUNTS = """
    SELECT id FROM sessions s WHERE message_count <> (
        SELECT count(*) FROM messages m WHERE m.session_id = s.id)
"""
BROKEN_TOOL_COUNTS = """
    SELECT id FROM sessions s WHERE tool_call_count <> (
        SELECT coalesce(sum(json_array_length(tool_calls)), 0)
        FROM messages m WHERE m.session_id = s.id)
"""
OUT_OF_ORDER = """
    SELECT a.id FROM messages a JOIN messages b ON b.id = a.id + 1 WHERE b.timestamp < a.timestamp
"""
CHILD_BEFORE_PARENT = """
    SELECT c.id FROM sessions c JOIN sessions p ON p.id = c.parent_session_id
    WHERE c.started_at < p.started_at
"""


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def contents(path: Path) -> list[list[tuple[Any, ...]]]:
    tables = ("sessions", "messages", "schema_version")
    return [ask(path, f"SELECT * FROM {table}") for table in tables]


def make_small(path: Path, kind: str = "native", seed: int = 1) -> Path:
    has_search = kind != "native"
    make(path, Size(SESSIONS, MESSAGES, kind=kind, has_search=has_search), seed)
    return path


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_small(tmp_path / "made.db", request.param)


def test_the_same_seed_makes_the_same_history(tmp_path: Path) -> None:
    first, again, other = (
        contents(make_small(tmp_path / f"{name}.db", seed=seed))
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert first == again
    assert first != other


def test_sizes_are_kept_exactly(made: Path) -> None:
    assert ask(made, "SELECT count(*) FROM sessions") == [(SESSIONS,)]
    assert ask(made, "SELECT count(*) FROM messages") == [(MESSAGES,)]


@pytest.mark.parametrize(
    "question",
    [
        BROKEN_COUNTS,
        BROKEN_TOOL_COUNTS,
        OUT_OF_ORDER,
        CHILD_BEFORE_PARENT,
        "PRAGMA foreign_key_check",
    ],
)
def test_rows_agree_with_each_other(made: Path, question: str) -> None:
    assert ask(made, question) == []


def test_every_page_is_whole(made: Path) -> None:
    assert ask(made, "PRAGMA integrity_check") == [("ok",)]


def test_a_native_history_is_well(tmp_path: Path) -> None:
    findings = health.examine(make_small(tmp_path / "made.db"))
    # Some sessions are left open on purpose, as crashes leave them.
    troubled = [f for f in findings if f.status == "failed" or f.name == "session index"]
    assert [finding.status for finding in troubled] == ["ok"]
    assert ask(tmp_path / "made.db", "SELECT count(*) FROM hermes_message") == [(MESSAGES,)]


def test_a_foreign_history_has_nothing_of_ours_and_opens(tmp_path: Path) -> None:
    path = make_small(tmp_path / "made.db", "schema16")
    before = schema_of(path)
    with SessionDB(path) as db:
        assert db.wait_for_index(60)
        assert db.session_count() == SESSIONS
        rows = db.list_sessions_rich(limit=-1, order_by_last_active=True)
        assert any(row["preview"] for row in rows)
    assert schema_of(path) == before


def test_a_foreign_search_index_finds_its_words(tmp_path: Path) -> None:
    path = make_small(tmp_path / "made.db", "schema16")
    answer = ask(path, "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'file'")
    assert answer[0][0] > 0


def test_lengths_have_a_long_tail() -> None:
    lengths = session_lengths(Random(1), 2_000, 104_000)
    assert sum(lengths) == 104_000
    assert 12 <= statistics.median(lengths) <= 18
    assert max(lengths) > 500


def test_a_wanted_number_of_bytes_is_met(tmp_path: Path) -> None:
    wanted = size_in_bytes("8MB")
    result = make(tmp_path / "made.db", Size(100, 5_000, wanted))
    assert 0.8 < result.total_bytes / wanted < 1.2


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        make(path, PRESETS["small"])
    assert path.read_bytes() == b"precious"
