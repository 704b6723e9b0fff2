"""Tokens of each imported answer: those of its request, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
from support.claude_files import ClaudeFile
from support.codex_files import CodexFile

if TYPE_CHECKING:
    from hermes_state import SessionDB
    from hermes_state.sessions.usage import AnswerUsage

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "agents"
STORED = "SELECT count(*) FROM hermes_answer_usage"
SUMS = """
    SELECT coalesce(sum(u.input_tokens), 0), coalesce(sum(u.output_tokens), 0),
        coalesce(sum(u.cache_read_tokens), 0), coalesce(sum(u.cache_write_tokens), 0),
        coalesce(sum(u.reasoning_tokens), 0)
    FROM hermes_answer_usage u JOIN messages m ON m.id = u.message_id WHERE m.role = 'assistant'
"""
TOTALS = """
    SELECT sum(coalesce(input_tokens, 0)), sum(coalesce(output_tokens, 0)),
        sum(coalesce(cache_read_tokens, 0)), sum(coalesce(cache_write_tokens, 0)),
        sum(coalesce(reasoning_tokens, 0)) FROM sessions
"""


def import_from(db: SessionDB, agent: str, home: Path) -> None:
    found = SourceRegistry().found_at(agent, home)
    AgentImport(db, found.source).run(found.units())


def numbers(db: SessionDB, sql: str) -> tuple[int, ...]:
    return tuple(int(value) for value in db.engine.read(lambda reader: reader.rows(sql))[0])


def usage_of(db: SessionDB, session_id: str) -> list[AnswerUsage]:
    found = db.usage.answers(session_id)
    return [found[row_id] for row_id in sorted(found)]


def test_an_answer_in_several_blocks_has_the_usage_of_its_request_once(
    db: SessionDB, tmp_path: Path
) -> None:
    origin = ClaudeFile(tmp_path).exchange("one", "first").exchange("two", "second")
    import_from(db, "claude-code", tmp_path)
    first, second = usage_of(db, f"claude-code-{origin.session_id}")
    assert (first.model, first.input_tokens, first.output_tokens) == ("claude-test", 10, 5)
    assert (first.cost_usd, first.cost_status, first.seconds) == (None, "unknown", 0.0)
    assert second == first
    fork = ClaudeFile(tmp_path, now=origin.now)  # which repeats the records of its origin
    fork.path.write_text(origin.path.read_text().replace(origin.session_id, fork.session_id))
    fork.exchange("three", "third")
    for _ in range(2):
        import_from(db, "claude-code", tmp_path)
        assert numbers(db, STORED) == (3,)
        assert len(usage_of(db, f"claude-code-{fork.session_id}")) == 3  # with those of its origin
        assert numbers(db, SUMS) == numbers(db, TOTALS) == (30, 15, 0, 0, 0)


def test_a_record_of_usage_belongs_to_the_answer_before_it(db: SessionDB, tmp_path: Path) -> None:
    origin = CodexFile(tmp_path).exchange("one", "first")
    import_from(db, "codex", tmp_path)
    origin.exchange("two", "second")
    usage = {"input_tokens": 700, "output_tokens": 70}
    origin.write("token_usage_record", {"response_id": "of-no-answer", "usage": usage})
    import_from(db, "codex", tmp_path)
    fork = CodexFile(tmp_path, origin).exchange("three", "third")
    for _ in range(2):
        import_from(db, "codex", tmp_path)
        assert [each.input_tokens for each in usage_of(db, origin.session_id)] == [10, 10]
        assert [each.output_tokens for each in usage_of(db, fork.session_id)] == [5, 5, 5]
        assert numbers(db, STORED) == (3,)
        assert numbers(db, SUMS)[:2] == (30, 15)
        assert numbers(db, TOTALS)[:2] == (730, 85)


@pytest.mark.parametrize("tokens", [-5, 10**30, "many", None])
def test_a_number_that_no_request_has_is_left_out(
    db: SessionDB, tmp_path: Path, tokens: object
) -> None:
    file = ClaudeFile(tmp_path)
    records = [file.prompt("one"), *file.answer("first")]
    for record in records[1:]:
        record["message"]["usage"] = {"input_tokens": tokens, "output_tokens": 5}
    file.path.write_text("".join(json.dumps(record) + "\n" for record in records))
    import_from(db, "claude-code", tmp_path)
    (usage,) = usage_of(db, f"claude-code-{file.session_id}")
    assert (usage.input_tokens, usage.output_tokens) == (0, 5)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
@pytest.mark.parametrize(
    ("agent", "folder", "is_complete"),
    [
        ("claude-code", "claude", True),
        ("pi", "pi", True),
        ("gemini", "gemini", True),
        ("qwen", "qwen", True),
        ("openclaw", "openclaw", True),
        ("opencode", "opencode", True),
        ("codex", "codex", False),  # requests of compactions have no answer
        ("copilot", "copilot", False),
        ("llm", "llm", True),
    ],
)
def test_the_answers_of_real_files_have_the_usage_of_their_conversations(
    db: SessionDB, agent: str, folder: str, is_complete: bool
) -> None:
    for _ in range(2):
        import_from(db, agent, SAMPLES / folder)
        sums, totals = numbers(db, SUMS), numbers(db, TOTALS)
        assert sum(sums) > 0
        assert all(one <= total for one, total in zip(sums, totals, strict=True))
        if is_complete:
            assert sums == totals
