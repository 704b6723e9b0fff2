"""`hermes sessions salvage`: what is readable of a damaged history, in a new file."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.salvage.pages import TABLE_INTERIOR, TABLE_LEAF, PageFile
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from support.command_line import Hermes

SESSIONS, MESSAGES = 20, 60
PAGE = 4096
LONG = "a long answer " * 8000  # many overflow pages
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def history(hermes_home: Path) -> Path:
    """A history with tags, a long message, and a deleted conversation."""
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        for number in range(SESSIONS):
            name = f"s{number:02}"
            db.create_session(name, "cli", model="a/model")
            db.set_session_title(name, f"Conversation {number}")
            for index in range(MESSAGES):
                db.append_message(
                    name, "user" if index % 2 else "assistant", f"{name} {index} 你好" * 9
                )
            db.end_session(name, "cli_close")
        db.append_message("s03", "assistant", LONG)
        db.tags.replace("s03", ["Work"])
        db.create_session("secret", "cli")
        for _ in range(MESSAGES):
            db.append_message("secret", "user", "deleted words " * 20)
        db.end_session("secret", "cli_close")
        db.delete_session("secret")
        db.trash.purge("secret")
    return path


def rows(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        return {
            "sessions": connection.execute("SELECT id, title, model FROM sessions").fetchall(),
            "messages": connection.execute(
                "SELECT id, session_id, role, content, timestamp FROM messages ORDER BY id"
            ).fetchall(),
        }


def message_pages(path: Path, kind: int) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        root = connection.execute(sql).fetchone()[0]
    with closing(PageFile(path)) as pages:
        return [number for number in pages.tree_pages(root) if pages.kind(number) == kind]


def overwrite(path: Path, page: int, data: bytes = bytes(PAGE)) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(data)


def salvage(hermes: Hermes, path: Path) -> dict[str, Any]:
    refused = hermes("sessions", "export", "-", "--all")
    assert refused.code == 1
    assert "hermes sessions salvage" in refused.err
    assert "Traceback" not in refused.err
    damaged = path.read_bytes()
    result = hermes("sessions", "salvage", "--json")
    assert result.code == 0, result.err
    report: dict[str, Any] = json.loads(result.out)
    assert Path(report["damaged_path"]).read_bytes() == damaged
    return report


def test_a_lost_page_costs_its_rows_and_nothing_else(hermes: Hermes, history: Path) -> None:
    before = rows(history)
    leaves = message_pages(history, TABLE_LEAF)
    overwrite(history, leaves[len(leaves) // 2])
    salvage(hermes, history)
    after = rows(history)
    assert after["sessions"] == before["sessions"]
    assert set(after["messages"]) < set(before["messages"])
    assert len(before["messages"]) - len(after["messages"]) < 40
    assert "Conversation 3" in hermes("sessions", "list", "--all").out
    with SessionDB(history) as db:
        assert db.tags.tags_of(["s03"]) == {"s03": ["Work"]}
    assert json.loads(hermes("doctor", "--json").out)["ok"]


def test_a_lost_inner_page_costs_nothing(hermes: Hermes, history: Path) -> None:
    before = rows(history)
    overwrite(history, message_pages(history, TABLE_INTERIOR)[0])
    salvage(hermes, history)
    assert rows(history) == before


def test_a_lost_header_costs_no_message(hermes: Hermes, history: Path) -> None:
    before = rows(history)
    overwrite(history, 1)
    report = salvage(hermes, history)
    after = rows(history)
    assert set(before["messages"]) <= set(after["messages"])
    assert set(before["sessions"]) <= set(after["sessions"])
    assert not report["has_free_list"]


def test_a_truncated_file_gives_what_is_left_of_it(hermes: Hermes, history: Path) -> None:
    before = rows(history)
    content = history.read_bytes()
    history.write_bytes(content[: len(content) // PAGE * 3 // 5 * PAGE])
    salvage(hermes, history)
    after = rows(history)
    assert 100 < len(after["messages"]) < len(before["messages"])
    assert set(after["messages"]) < set(before["messages"])


def test_deleted_messages_do_not_come_back(hermes: Hermes, history: Path) -> None:
    overwrite(history, message_pages(history, TABLE_INTERIOR)[0])
    assert b"deleted words" in history.read_bytes()
    salvage(hermes, history)
    assert not any("deleted words" in row[3] for row in rows(history)["messages"])


def test_committed_rows_of_the_log_are_recovered(
    hermes: Hermes, history: Path, tmp_path: Path
) -> None:
    db = SessionDB(history)
    db.create_session("late", "cli")
    db.append_message("late", "user", "only in the log")
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):  # by another process: the store guards its file in this one
        subprocess.run(["cp", f"{history}{suffix}", f"{copy}{suffix}"], check=True)
    db.close()
    overwrite(copy, message_pages(history, TABLE_LEAF)[5])
    result = hermes("sessions", "salvage", "--from", str(copy), "--to", str(tmp_path / "new.db"))
    assert result.code == 0, result.err
    assert "only in the log" in [row[3] for row in rows(tmp_path / "new.db")["messages"]]
    assert str(copy) in result.out


def test_a_schema_16_file_without_its_header_is_recovered(
    hermes: Hermes, hermes_home: Path
) -> None:
    path = hermes_home / "state.db"
    make_schema_16(path)
    write_as_hermes_agent(
        path,
        [foreign_session("old", 5.0, title="An old talk")]
        + [foreign_message("old", "user", f"old words {n}", float(n)) for n in range(30)],
    )
    before = rows(path)
    overwrite(path, 1)
    salvage(hermes, path)
    assert rows(path) == before


def test_an_intact_history_is_left_alone(hermes: Hermes, history: Path) -> None:
    before = history.read_bytes()
    assert "is not damaged" in hermes("sessions", "salvage").out
    assert history.read_bytes() == before


def test_an_emptied_history_is_recognised_and_kept_aside(hermes: Hermes, history: Path) -> None:
    assert hermes("sessions", "search", "你好").code == 0  # writes the search index
    history.write_bytes(b"")
    refused = hermes("sessions", "rename", "s01", "Other")
    assert refused.code == 1
    assert "is empty, but search.db" in refused.err
    assert history.stat().st_size == 0
    result = hermes("sessions", "salvage")
    assert "the file is empty" in result.out
    assert "No" in hermes("sessions", "list").out
