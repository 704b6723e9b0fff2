"""Titles and archive states that change in another agent after an import."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from hermes_state.engine.sqlite.driver import sqlite3
from support.claude_files import ClaudeFile
from support.codex_files import CodexFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    ImportFrom = Callable[[str, Path], SourceReport]


def row(db: SessionDB, session_id: str) -> dict[str, Any]:
    found = db.get_session(session_id)
    assert found is not None
    return found


def rename(file: ClaudeFile, title: str) -> None:
    file.write({"type": "custom-title", "customTitle": title, "sessionId": file.session_id})


def test_a_title_follows_its_agent_until_the_user_sets_one_here(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path
) -> None:
    file, other = (ClaudeFile(tmp_path).exchange("hello", "Hi.") for _ in range(2))
    session_id = f"claude-code-{file.session_id}"
    import_from("claude-code", tmp_path)
    assert row(db, session_id)["title"] is None
    rename(file, "Roof")
    import_from("claude-code", tmp_path)
    assert row(db, session_id)["title"] == "Roof"
    rename(other, "Cellar")
    rename(file, "Cellar")
    import_from("claude-code", tmp_path)
    titles = {row(db, f"claude-code-{each.session_id}")["title"] for each in (file, other)}
    assert titles == {"Cellar", "Cellar #2"}
    db.set_session_title(session_id, "Mine")
    rename(file, "Attic")
    file.exchange("more", "Yes.")
    assert import_from("claude-code", tmp_path).messages == 2
    assert row(db, session_id)["title"] == "Mine"
    db.set_session_title(session_id, None)  # no title is a choice, too
    rename(file, "Garden")
    import_from("claude-code", tmp_path)
    assert row(db, session_id)["title"] is None


def test_archiving_follows_the_agent_until_the_user_changes_it_here(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path
) -> None:
    file = CodexFile(tmp_path).exchange("hello", "Hi.")
    archived = tmp_path / ".codex" / "archived_sessions" / file.path.name
    archived.parent.mkdir()

    def state() -> bool:
        import_from("codex", tmp_path)
        return bool(row(db, file.session_id)["archived"])

    assert not state()
    file.path.rename(archived)
    assert state()
    archived.rename(file.path)
    assert not state()
    db.set_session_archived(file.session_id, True)
    file.exchange("more", "Yes.")
    assert state()
    assert len(db.get_messages(file.session_id)) == 4


def test_a_title_of_copilot_changes_without_its_events(
    db: SessionDB, import_from: ImportFrom, sample_copy: Callable[[str], Path]
) -> None:
    home = sample_copy("copilot")
    import_from("copilot", home)
    names = next(iter(sorted(home.rglob("workspace.yaml"))))
    names.write_text("name: Renamed there\nuser_named: true\n")
    assert import_from("copilot", home).messages == 0
    found = db.titles.find("Renamed there")
    assert found is not None
    assert found.id == f"copilot-{names.parent.name}"


def test_a_title_in_a_database_changes_without_its_messages(
    db: SessionDB, import_from: ImportFrom, sample_copy: Callable[[str], Path]
) -> None:
    home = sample_copy("opencode")
    import_from("opencode", home)
    path = next(home.rglob("opencode.db"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE session SET title = 'Renamed there', time_archived = 1")
        connection.commit()
    assert import_from("opencode", home).messages == 0
    assert db.titles.find("Renamed there") is not None
    assert all(row(db, each.session_id)["archived"] for each in db.imports.all())
