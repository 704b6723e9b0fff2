"""Histories that grow while they are imported: the result is that of one import at the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
from hermes_state import SessionDB
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport

AGENTS = {
    "claude-code": "claude", "codex": "codex", "gemini": "gemini", "pi": "pi", "qwen": "qwen",
    "aider": "aider",
}  # fmt: skip
ROWS = """
    SELECT session_id, role, content, reasoning, tool_calls, finish_reason, tool_name, active
    FROM messages ORDER BY session_id, id
"""
SESSIONS = """
    SELECT id, parent_session_id, title, message_count, tool_call_count, input_tokens,
        output_tokens, cache_read_tokens, reasoning_tokens, api_call_count
    FROM sessions ORDER BY id
"""


def content_of(db: SessionDB) -> tuple[list[Any], list[Any]]:
    return (
        db.engine.read(lambda reader: reader.rows(ROWS)),
        db.engine.read(lambda reader: reader.rows(SESSIONS)),
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_history_imported_line_by_line_equals_one_imported_at_once(
    db: SessionDB, tmp_path: Path, sample_copy: Callable[[str], Path], agent: str
) -> None:
    home = sample_copy(AGENTS[agent])
    found = SourceRegistry().found_at(agent, home / "project" if agent == "aider" else home)
    units = found.source.in_order(list(found.units()))
    with SessionDB(tmp_path / "at-once.db") as other:
        AgentImport(other, found.source).run(units)
        expected = content_of(other)
    lines = {unit.path: unit.path.read_bytes().splitlines(keepends=True) for unit in units}
    for unit in units:
        unit.path.unlink()
    for unit in units:
        for number in range(len(lines[unit.path])):
            unit.path.write_bytes(b"".join(lines[unit.path][: number + 1]))
            os.utime(unit.path, ns=(number, number))
            AgentImport(db, found.source).run(found.source.units_at(found.roots[0], [unit.path]))
    assert content_of(db) == expected


def test_blocks_of_two_answers_that_alternate_are_all_kept(
    db: SessionDB, tmp_path: Path, import_from: Callable[[str, Path], SourceReport]
) -> None:
    file = ClaudeFile(tmp_path / "ada")
    first, second = file.answer("one"), file.answer("two")
    file.write(file.prompt("hi"), first[0], second[0], first[1], second[1])
    import_from("claude-code", file.home)
    rows = db.get_messages(f"claude-code-{file.session_id}")
    assert [row["content"] for row in rows] == ["hi", "one", "two"]


def test_a_conversation_that_grew_is_continued_with_all_of_it(
    db: SessionDB, tmp_path: Path, import_from: Callable[[str, Path], SourceReport]
) -> None:
    file = ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")
    import_from("claude-code", file.home)
    session_id = f"claude-code-{file.session_id}"
    opened = db.imports.continue_here(session_id, "cli")
    assert db.imports.continue_here(session_id, "cli") != opened  # which another terminal may have
    file.exchange("and now?", "More.")
    import_from("claude-code", file.home)
    rows = db.get_messages(db.imports.continue_here(session_id, "cli"))
    assert [row["content"] for row in rows] == ["hello", "Hi.", "and now?", "More."]
