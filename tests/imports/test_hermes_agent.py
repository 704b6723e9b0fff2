"""Histories of hermes-agent in another folder: every row once, nothing of theirs changed."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import UsageError
from hermes_import.importer import AgentImport, ImportOptions
from hermes_import.registry import SourceRegistry
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.imports.original_history import OriginalHistory
from hermes_state.messages.rows import decode_content
from state.foreign_files import foreign_message, foreign_session, make_schema_16
from support.file_hashes import file_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hermes_import.importer import SourceReport

SAMPLES = ("state-schema16.db", "state-schema26.db")
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "api_call_count")
KEPT_SESSION_COLUMNS = (
    "id", "source", "model", "parent_session_id", "started_at", "ended_at", "end_reason", "title",
    "archived", "cwd", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
    "rewind_count", "message_count", "tool_call_count", *COUNTED,
)  # fmt: skip
KEPT_MESSAGE_COLUMNS = (
    "role", "content", "tool_calls", "tool_call_id", "tool_name", "timestamp", "finish_reason",
    "reasoning", "reasoning_content", "platform_message_id", "active", "compacted", "observed",
)  # fmt: skip


def run_import(db: SessionDB, home: Path, options: ImportOptions | None = None) -> SourceReport:
    found = SourceRegistry().found_at("hermes-agent", home)
    return AgentImport(db, found.source, options).run(found.units())


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, shared_data: Path, tmp_path: Path) -> Path:
    """A home with a history that hermes-agent wrote."""
    home = tmp_path / "other"
    home.mkdir()
    shutil.copyfile(shared_data / request.param, home / "state.db")
    return home


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A home with one conversation of schema 16."""
    home = tmp_path / "small"
    home.mkdir()
    make_schema_16(home / "state.db")
    change(home, foreign_session("s1", 100.0, title="Tea"))
    change(home, foreign_message("s1", "user", "Green or black?", 101.0))
    change(home, foreign_message("s1", "assistant", "Green.", 102.0))
    return home


def change(home: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        for sql, values in statements:
            connection.execute(sql, values)


def test_every_row_of_a_sample_is_imported_with_its_columns(db: SessionDB, sample: Path) -> None:
    before = file_hashes(sample)
    report = run_import(db, sample)
    assert (report.new, report.messages, report.failures) == (14, 75, {})
    assert file_hashes(sample) == before
    with OriginalHistory(sample / "state.db") as original:
        for listed in original.sessions():
            theirs = original.session(listed.session_id)
            ours = dict(db.get_session(listed.session_id) or {})
            assert {name: ours[name] or None for name in KEPT_SESSION_COLUMNS} == {
                name: theirs[name] or None for name in KEPT_SESSION_COLUMNS
            }
            rows = db.get_messages(listed.session_id, include_inactive=True)
            assert rows_of(rows) == rows_of(original.messages(listed.session_id))


def rows_of(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Rows with their contents decoded."""
    return [
        {name: row[name] for name in KEPT_MESSAGE_COLUMNS}
        | {"content": decode_content(row["content"]), "tool_calls": decoded(row["tool_calls"])}
        for row in rows
    ]


def decoded(calls: object) -> object:
    return json.loads(calls) if isinstance(calls, str) else calls


def test_a_second_import_takes_nothing_twice(db: SessionDB, sample: Path) -> None:
    run_import(db, sample)
    totals = db.usage.totals()
    again = run_import(db, sample)
    assert (again.new, again.messages, again.unchanged) == (0, 0, 14)
    elsewhere = sample.with_name("copy")
    shutil.copytree(sample, elsewhere)
    moved = run_import(db, elsewhere)
    assert (moved.new, moved.messages) == (0, 0)
    assert db.usage.totals() == totals


def test_lineage_is_that_of_the_original(db: SessionDB, sample: Path) -> None:
    run_import(db, sample)
    listed = {row["id"]: row for row in db.list_sessions_rich(limit=-1)}
    assert listed["20260615_190001_0c0c02"]["_lineage_root_id"] == "20260615_160000_0c0c01"
    assert "20260615_141600_sub000" not in listed
    assert db.get_compression_tip("20260615_160000_0c0c01") == "20260615_190001_0c0c02"


def test_a_dry_run_counts_and_stores_nothing(db: SessionDB, sample: Path) -> None:
    report = run_import(db, sample, ImportOptions(is_dry_run=True))
    assert (report.new, report.messages) == (14, 75)
    assert db.list_sessions_rich(limit=-1) == []


def test_what_was_written_since_is_added(db: SessionDB, small: Path) -> None:
    run_import(db, small)
    change(small, foreign_message("s1", "user", "Why?", 103.0))
    change(small, ("UPDATE messages SET active = 0 WHERE content = 'Green.'", ()))
    change(small, ("UPDATE sessions SET input_tokens = 70, model = 'm' WHERE id = 's1'", ()))
    report = run_import(db, small)
    assert (report.extended, report.messages) == (1, 1)
    assert [row["content"] for row in db.get_messages("s1")] == ["Green or black?", "Why?"]
    session = db.get_session("s1")
    assert session is not None
    assert session["input_tokens"] == 70


def test_a_branch_counts_what_it_repeats_once(db: SessionDB, small: Path) -> None:
    marker = json.dumps({"_branched_from": "s1"})
    change(small, foreign_session("s2", 200.0, title="Tea again"))
    branch = "UPDATE sessions SET parent_session_id = 's1', model_config = ? WHERE id = 's2'"
    change(small, (branch, (marker,)))
    for role, text in (("user", "Green or black?"), ("assistant", "Green."), ("user", "Sure?")):
        change(small, foreign_message("s2", role, text, 201.0))
    report = run_import(db, small)
    assert (report.messages, report.copies) == (3, 2)
    assert [row["content"] for row in db.get_messages("s2")][-1] == "Sure?"
    assert db.statistics.stats().lifetime_messages == 3


def test_a_deleted_conversation_stays_deleted(db: SessionDB, small: Path) -> None:
    run_import(db, small)
    db.delete_session("s1")
    change(small, foreign_message("s1", "user", "Why?", 103.0))
    assert run_import(db, small).deleted == 1


def test_it_is_continued_in_place(db: SessionDB, small: Path) -> None:
    run_import(db, small)
    assert db.imports.continue_here("s1", "cli") == "s1"


@pytest.mark.parametrize("has_index", [True, False], ids=["open", "after a crash"])
def test_a_write_ahead_log_is_read_and_kept(
    db: SessionDB, small: Path, tmp_path: Path, *, has_index: bool
) -> None:
    home = tmp_path / "live"
    home.mkdir()
    with closing(sqlite3.connect(small / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(*foreign_message("s1", "user", "Only in the log.", 104.0))
        for suffix in ("", "-wal", "-shm")[: 3 if has_index else 2]:
            shutil.copyfile(small / f"state.db{suffix}", home / f"state.db{suffix}")
    before = file_hashes(home)
    assert run_import(db, home).messages == 3
    assert file_hashes(home) == before


def test_a_schema_before_16_is_imported_as_far_as_its_columns_go(
    db: SessionDB, tmp_path: Path
) -> None:
    home = tmp_path / "old"
    home.mkdir()
    tables = (
        "CREATE TABLE schema_version (version INTEGER NOT NULL)",
        "INSERT INTO schema_version VALUES (3)",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT,"
        " started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, input_tokens INTEGER)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,"
        " content TEXT, tool_calls TEXT, timestamp REAL)",
        "INSERT INTO sessions VALUES ('old', 'telegram', 'm', 1.0, 9.0, 'session_reset', 50)",
        "INSERT INTO messages VALUES (1, 'old', 'user', 'hello', NULL, 2.0)",
    )
    change(home, *((statement, ()) for statement in tables))
    report = run_import(db, home)
    assert (report.new, report.messages, report.failures) == (1, 1, {})
    session = db.get_session("old")
    assert session is not None
    assert (session["source"], session["end_reason"]) == ("telegram", "session_reset")
    assert session["input_tokens"] == 50


def test_a_snapshot_is_imported_if_the_database_lacks_its_session(
    db: SessionDB, small: Path
) -> None:
    folder = small / "sessions"
    folder.mkdir()
    messages = [{"role": "system", "content": "p"}, {"role": "user", "content": "From a file."}]
    for name in ("s1", "s9"):
        record = {"session_id": name, "model": "m", "messages": messages}
        (folder / f"session_{name}.json").write_text(json.dumps(record))
    (folder / "session_bad.json").write_text("{")
    report = run_import(db, small)
    assert (report.new, report.messages) == (2, 3)
    assert list(report.failures) == [str(folder / "session_bad.json")]
    assert [row["content"] for row in db.get_messages("s9")] == ["From a file."]
    assert run_import(db, small).messages == 0


def test_another_database_is_refused(tmp_path: Path) -> None:
    change(tmp_path, ("CREATE TABLE sessions (x)", ()))
    with pytest.raises(UsageError, match="not a history of hermes-agent"):
        OriginalHistory(tmp_path / "state.db")


def test_a_session_that_is_in_the_history_already_is_not_imported(
    db: SessionDB, small: Path
) -> None:
    db.create_session("s1", "cli")
    assert run_import(db, small, ImportOptions(is_dry_run=True)).taken == 1
    assert run_import(db, small).taken == 1
    assert db.get_messages("s1") == []


def test_texts_with_zero_characters_and_broken_bytes_are_imported(
    db: SessionDB, small: Path
) -> None:
    change(small, foreign_message("s1", "tool", "a\x00b", 103.0))
    broken = "UPDATE messages SET reasoning = CAST(x'61ff62' AS TEXT), platform_message_id = ?"
    change(small, (f"{broken} WHERE content = 'Green.'", ("7\x008",)))
    assert run_import(db, small).failures == {}
    rows = db.get_messages("s1")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool"]
    assert rows[1]["reasoning"] == "a\ufffdb"


def test_the_folder_of_hermes_itself_is_refused(db: SessionDB, hermes_home: Path) -> None:
    if not db.engine.database.is_file:
        pytest.skip("the history is not in the folder")
    with pytest.raises(UsageError, match="is the folder of Hermes"):
        run_import(db, hermes_home)


def test_totals_are_those_of_the_same_history_in_place(
    db: SessionDB, sample: Path, tmp_path: Path
) -> None:
    run_import(db, sample)
    copy = tmp_path / "in place" / "state.db"
    copy.parent.mkdir()
    shutil.copyfile(sample / "state.db", copy)
    with SessionDB(copy) as opened:
        assert opened.wait_for_index(60)
        assert db.usage.totals() == pytest.approx(opened.usage.totals())
        ours, theirs = db.statistics.stats(), opened.statistics.stats()
    for name in ("sessions", "messages", "tool_calls", "by_source", "lifetime_messages"):
        assert getattr(ours, name) == getattr(theirs, name)
