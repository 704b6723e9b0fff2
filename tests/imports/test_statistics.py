"""Statistics and achievements over conversations of several agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.scanner import Scanner
from hermes_core.history_rows import AGENT_SOURCES
from hermes_import.importer import AgentImport
from hermes_import.registry import BUILT_IN, SourceRegistry
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB
    from support.command_line import Hermes

AIDER = "\n# aider chat started at 2026-03-01 12:00:00\n\n#### hello  \n\nHi.\n"


def values_of(db: SessionDB) -> dict[str, int]:
    ledger = db.ledger.open()
    try:
        scan = Scanner(db.ledger.history, ledger, "UTC", processes=1).refresh()
    finally:
        ledger.close()
    return compute_values(scan.tally)


def import_from(db: SessionDB, agent: str, path: Path) -> None:
    found = SourceRegistry().found_at(agent, path)
    AgentImport(db, found.source).run(found.units())


def test_agents_and_their_projects_are_counted(db: SessionDB, tmp_path: Path) -> None:
    project = tmp_path / "ada" / "project"
    project.mkdir(parents=True)
    (project / ".aider.chat.history.md").write_text(AIDER)
    ClaudeFile(tmp_path / "ada", cwd=str(project)).exchange("hello", "Hi.")
    db.create_session("s1", "cli", cwd=str(project))
    db.append_message("s1", "user", content="hello")
    import_from(db, "claude-code", tmp_path / "ada")
    assert values_of(db)["agents_in_project"] == 2
    import_from(db, "aider", project)
    values = values_of(db)
    assert (values["distinct_agents"], values["agents_in_project"]) == (3, 3)
    assert values["distinct_places"] == 1  # another agent is not a place to speak from
    assert values["total_messages_sent"] == 3


def test_a_fork_adds_only_what_is_new_to_the_statistics(db: SessionDB, tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")
    fork = ClaudeFile(file.home, now=file.now + 60)
    fork.path.write_text(file.path.read_text().replace(file.session_id, fork.session_id))
    fork.exchange("another way", "Fine.")
    import_from(db, "claude-code", file.home)
    assert values_of(db)["total_messages_sent"] == 2


def test_every_agent_is_known_to_the_statistics() -> None:
    assert set(BUILT_IN) - {"hermes-export", "hermes-agent"} == AGENT_SOURCES


def test_totals_count_the_messages_and_calls_of_a_fork_once(hermes: Hermes, tmp_path: Path) -> None:
    """A fork of Claude Code is a file that repeats the records of its origin."""
    origin = ClaudeFile(tmp_path)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    origin.write(origin.prompt("list"), origin._answer("msg_1", call))
    fork = ClaudeFile(tmp_path)
    for line in origin.path.read_text().splitlines():
        fork.write({**json.loads(line), "sessionId": fork.session_id})
    fork.now = origin.now
    fork.exchange("and now?", "Nothing.")
    assert hermes("import", "claude-code", str(tmp_path / ".claude"), "--yes").code == 0
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    assert (stats["messages"], stats["tool_calls"]) == (4, 1)
    assert (stats["lifetime_messages"], stats["lifetime_tool_calls"]) == (4, 1)
    shown = json.loads(hermes("sessions", "list", "--json").out)
    assert sorted(row["message_count"] for row in shown) == [2, 4]


def test_imported_usage_is_priced_by_the_name_of_its_model(hermes: Hermes, tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path)
    usage = {
        "input_tokens": 1_000_000, "output_tokens": 100_000,
        "cache_read_input_tokens": 2_000_000, "cache_creation_input_tokens": 1_000_000,
    }  # fmt: skip
    record = file._answer("msg_1", {"type": "text", "text": "Yes."})
    record["message"] |= {"model": "claude-opus-4-20250514", "usage": usage}
    file.write(file.prompt("hi"), record)
    assert hermes("import", "claude-code", str(tmp_path / ".claude"), "--yes").code == 0
    report = json.loads(hermes("usage", "--since", "2026-01-01", "--json").out)
    assert report["totals"]["cost_usd"] == 15 + 7.5 + 2 * 1.5 + 18.75
    assert report["totals"]["cache_write_tokens"] == 1_000_000
    assert hermes("sessions", "stats").out.count("$44.25")


def test_a_model_without_a_price_has_an_unknown_cost(hermes: Hermes, tmp_path: Path) -> None:
    ClaudeFile(tmp_path).exchange("hi", "Yes.")  # by the model claude-test
    assert hermes("import", "claude-code", str(tmp_path / ".claude"), "--yes").code == 0
    assert "unknown" in hermes("usage", "--since", "2026-01-01").out
    assert "unknown for 1 session" in hermes("sessions", "stats").out
