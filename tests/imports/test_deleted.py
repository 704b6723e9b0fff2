"""Imported conversations that were deleted here, and what depends on them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hermes_import.importer import AgentImport, ImportOptions
from hermes_import.line_files import MESSAGES_PER_PART
from hermes_import.registry import SourceRegistry
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB
    from support.command_line import Hermes


@pytest.fixture
def file(tmp_path: Path) -> ClaudeFile:
    return ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")


def session_of(file: ClaudeFile) -> str:
    return f"claude-code-{file.session_id}"


def fork_of(file: ClaudeFile) -> ClaudeFile:
    fork = ClaudeFile(file.home, now=file.now + 60)
    fork.path.write_text(file.path.read_text().replace(file.session_id, fork.session_id))
    return fork.exchange("another way", "Fine.")


def texts(db: SessionDB, file: ClaudeFile) -> list[object]:
    return [row["content"] for row in db.get_messages(session_of(file))]


def test_a_restored_conversation_gets_what_was_written_meanwhile(
    db: SessionDB, hermes: Hermes, file: ClaudeFile
) -> None:
    for _ in range(2):
        file.exchange("more", "Yes.")
    hermes("import", "claude-code", str(file.home))
    hermes("sessions", "delete", session_of(file), "--yes")
    for _ in range(2):
        file.exchange("meanwhile", "Noted.")
    hermes("import", "claude-code", str(file.home))
    hermes("sessions", "restore", session_of(file))
    hermes("import", "claude-code", str(file.home))
    assert texts(db, file) == ["hello", "Hi.", *["more", "Yes."] * 2, *["meanwhile", "Noted."] * 2]


def test_a_fork_of_a_purged_conversation_is_imported_and_counts_only_its_own(
    db: SessionDB, hermes: Hermes, file: ClaudeFile
) -> None:
    hermes("import", "claude-code", str(file.home))
    hermes("sessions", "delete", session_of(file), "--purge", "--yes")
    fork = fork_of(file)
    finished = hermes("import", "claude-code", str(file.home))
    assert finished.code == 0, finished.err
    assert texts(db, fork) == ["hello", "Hi.", "another way", "Fine."]
    row = db.get_session(session_of(fork))
    assert row is not None
    assert (row["input_tokens"], row["message_count"]) == (10, 4)


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_fork_that_is_read_again_after_its_origin_was_purged_is_not_stored_twice(
    db: SessionDB,
    import_from: Callable[[str, Path], SourceReport],
    file: ClaudeFile,
    tmp_path: Path,
    *,
    is_cleaned: bool,
) -> None:
    fork = fork_of(file)
    import_from("claude-code", file.home)
    db.delete_session(session_of(file))
    db.trash.purge(session_of(file))
    if is_cleaned:
        db.statistics.clean_up()
    shutil.copytree(file.home, tmp_path / "copy")
    import_from("claude-code", tmp_path / "copy")
    assert texts(db, fork) == ["hello", "Hi.", "another way", "Fine."]


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_deleted_conversation_is_reported_once(
    db: SessionDB, file: ClaudeFile, *, is_dry_run: bool
) -> None:
    found = SourceRegistry().found_at("claude-code", file.home)
    AgentImport(db, found.source).run(found.units())
    db.delete_session(session_of(file))
    for _ in range(MESSAGES_PER_PART + 1):
        file.exchange("more", "Yes.")
    report = AgentImport(db, found.source, ImportOptions(is_dry_run=is_dry_run)).run(found.units())
    assert (report.deleted, report.new, report.messages) == (1, 0, 0)
