"""Histories that other agents wrote, imported: totals equal those counted independently."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_import.importer import AgentImport, ImportOptions
from hermes_import.registry import BUILT_IN, SourceRegistry
from hermes_state.imports.rows import session_id_of

if TYPE_CHECKING:
    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "agents"
# The folder of each agent's sample.
FOLDERS = {"claude-code": "claude"}
OPENCLAW_REASONING = 17  # the sum of all `usage.reasoningTokens`

# Copies are in the history of a fork, but counted only in the conversation they come from.
OWN_ROWS = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_calls, m.finish_reason, m.reasoning
    FROM messages m LEFT JOIN hermes_copy c ON c.message_id = m.id
    WHERE c.message_id IS NULL ORDER BY m.id
"""

pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
samples = pytest.mark.parametrize(
    "agent", [name for name in BUILT_IN if (SAMPLES / FOLDERS.get(name, name)).exists()]
)


def sample(agent: str) -> tuple[Path, dict[str, Any]]:
    folder = SAMPLES / FOLDERS.get(agent, agent)
    return folder, json.loads((folder / "EXPECTED.json").read_text())


def import_all(db: SessionDB, agent: str, folder: Path) -> SourceReport:
    found = SourceRegistry().found_at(agent, folder)
    return AgentImport(db, found.source).run(found.units())


class Imported:
    """What the history has of one agent."""

    def __init__(self, db: SessionDB, agent: str) -> None:
        rows = db.engine.read(lambda reader: reader.dicts("SELECT * FROM sessions"))
        names = {each.session_id: each.native_id for each in db.imports.all()}
        self.sessions = {names[row["id"]]: row for row in rows if row["id"] in names}
        self.names, self.agent = names, agent
        self.rows = [
            row
            for row in db.engine.read(lambda reader: reader.dicts(OWN_ROWS))
            if row["session_id"] in names
        ]

    def kinds(self) -> Counter[str]:
        return Counter(self.kind(native_id) for native_id in self.sessions)

    def kind(self, native_id: str) -> str:
        row = self.sessions[native_id]
        markers = json.loads(row["model_config"] or "{}")
        if row["source"] == "subagent":
            return "subagent"
        return "fork" if "_branched_from" in markers else "main"

    def native_id(self, name: str) -> str:
        """The ID of a conversation; aider states only its start, to which a digest is added."""
        if self.agent != "aider":
            return name
        start = name.replace("-", "").replace(":", "").replace(" ", "-")
        return next(native_id for native_id in self.sessions if native_id.startswith(start))

    def tokens(self) -> dict[str, int]:
        names = ("input", "cache_read", "cache_write", "output", "reasoning")
        return {
            name: sum(row[f"{name}_tokens"] or 0 for row in self.sessions.values())
            for name in names
        }

    def prompts(self, native_id: str) -> list[str]:
        return [
            row["content"]
            for row in self.rows
            if row["role"] == "user" and self.names[row["session_id"]] == native_id
        ]

    def count(self, role: str, native_id: str | None = None) -> int:
        return sum(
            row["role"] == role
            # An answer of Codex that consists of tool calls is not counted as a message there.
            and bool(row["content"] or self.agent != "codex")
            and (native_id is None or self.names[row["session_id"]] == native_id)
            for row in self.rows
        )

    def tool_calls(self) -> Counter[str]:
        calls = [json.loads(row["tool_calls"]) for row in self.rows if row["tool_calls"]]
        return Counter(call["function"]["name"] for each in calls for call in each)

    def tool_errors(self) -> int:
        return sum(row["role"] == "tool" and row["finish_reason"] == "error" for row in self.rows)


@samples
def test_totals_equal_those_counted_by_another_reader(db: SessionDB, agent: str) -> None:
    folder, expected = sample(agent)
    report = import_all(db, agent, folder)
    assert (report.failures, dict(report.unknown)) == ({}, {})
    found = Imported(db, agent)
    assert found.kinds() == Counter(expected["by_kind"])
    assert found.count("user") == expected["user_messages"]
    assert found.count("assistant") == expected["assistant_messages"]
    assert found.tool_calls() == Counter(expected["tool_calls"])
    assert found.tool_errors() == expected["tool_errors"]
    tokens = found.tokens()
    if agent == "openclaw":  # reasoning tokens, which its database states, are not counted there
        assert tokens.pop("reasoning") == OPENCLAW_REASONING
        expected["token_totals"].pop("reasoning")
    assert tokens == expected["token_totals"]
    calls = sum(row["api_call_count"] for row in found.sessions.values())
    assert calls == expected["api_calls_with_usage"]


@samples
def test_each_conversation_has_its_prompts_place_and_parent(db: SessionDB, agent: str) -> None:
    folder, expected = sample(agent)
    import_all(db, agent, folder)
    found = Imported(db, agent)
    for each in expected["detail"]:
        native_id = found.native_id(each["id"])
        row = found.sessions[native_id]
        assert found.kind(native_id) == each["kind"]
        assert found.prompts(native_id) == each["user_messages"]
        assert found.count("assistant", native_id) == each["assistant_messages"]
        assert row["input_tokens"] == each["usage"]["input"]
        assert row["output_tokens"] == each["usage"]["output"]
        if each["cwd"] and agent != "aider":  # there it is the folder of the file
            assert row["cwd"] == each["cwd"]
        if each["parent"]:
            assert row["parent_session_id"] == session_id_of(agent, each["parent"])
        if each["title"]:
            assert row["title"].startswith(each["title"])
        if each.get("git_branch"):
            assert row["git_branch"] == each["git_branch"]
        if each.get("cost"):
            assert row["actual_cost_usd"] == pytest.approx(each["cost"])
        thoughts = [
            message
            for message in found.rows
            if message["reasoning"] and found.names[message["session_id"]] == native_id
        ]
        if agent != "llm":  # it stores that there was reasoning, but not the text
            assert bool(thoughts) == bool(each["thinking_blocks"])


@samples
def test_a_second_import_changes_nothing(db: SessionDB, agent: str) -> None:
    folder, _ = sample(agent)
    first = import_all(db, agent, folder)
    before = db.engine.read(lambda reader: reader.rows("SELECT * FROM messages ORDER BY id"))
    again = import_all(db, agent, folder)
    assert (again.units, again.unchanged) == (0, first.units)
    assert db.engine.read(lambda r: r.rows("SELECT * FROM messages ORDER BY id")) == before


@samples
def test_reading_everything_again_stores_nothing_twice(db: SessionDB, agent: str) -> None:
    folder, _ = sample(agent)
    import_all(db, agent, folder)
    before = Imported(db, agent)
    db.engine.write(lambda tx: tx.run("DELETE FROM hermes_import_unit"))
    report = import_all(db, agent, folder)
    assert (report.new, report.extended, report.messages) == (0, 0, 0)
    after = Imported(db, agent)
    assert (after.rows, after.tokens()) == (before.rows, before.tokens())


@samples
def test_a_dry_run_reports_what_the_import_does(db: SessionDB, agent: str) -> None:
    folder, _expected = sample(agent)
    found = SourceRegistry().found_at(agent, folder)
    dry = AgentImport(db, found.source, ImportOptions(is_dry_run=True)).run(found.units())
    real = AgentImport(db, found.source).run(found.units())
    assert (dry.new, dry.extended, dry.messages) == (real.new, real.extended, real.messages)
