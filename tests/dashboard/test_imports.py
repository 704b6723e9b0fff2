"""Histories of other agents on the dashboard: listed and imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_conversation.agent_imports import BackgroundImport
from hermes_import.agents.claude_code import ClaudeCode
from hermes_import.registry import FoundHistory
from hermes_state import SessionDB
from support.claude_files import ClaudeFile
from support.waiting import wait_until

if TYPE_CHECKING:
    import httpx2 as httpx

    from hermes_import.sources import Unit


def test_what_is_on_this_machine_is_listed_and_imported(client: httpx.Client) -> None:
    assert client.get("/api/imports").json()["items"] == []
    file = ClaudeFile(Path.home()).exchange("hello", "Hi.")
    [item] = client.get("/api/imports").json()["items"]
    assert (item["agent"], item["conversations"], item["new"]) == ("claude-code", 1, 1)
    assert (item["imported"], item["imported_at"]) == (0, None)
    assert client.post("/api/imports", json={}).status_code == 202
    wait_until(lambda: not client.get("/api/imports").json()["is_running"])
    state = client.get("/api/imports").json()
    assert (state["items"][0]["new"], state["items"][0]["imported"]) == (0, 1)
    assert state["results"][0]["messages"] == 2
    [row] = client.get("/api/sessions", params={"source": "claude-code"}).json()["items"]
    assert row["id"] == f"claude-code-{file.session_id}"


def test_an_agent_without_a_history_is_refused(client: httpx.Client) -> None:
    answer = client.post("/api/imports", json={"agents": ["codex"]})
    assert answer.status_code == 404
    assert "codex" in answer.text


class FailingAgent(ClaudeCode):
    """An agent of a plugin that fails outside of reading."""

    def in_order(self, units: list[Unit]) -> list[Unit]:
        raise ValueError("cannot sort")


def test_an_import_that_fails_as_a_whole_is_in_the_results(hermes_home: Path) -> None:
    file = ClaudeFile(hermes_home / "ada").exchange("hello", "Hi.")
    history = FoundHistory(FailingAgent(), (file.home / ".claude",))
    with SessionDB() as db:
        imports = BackgroundImport(db)
        assert imports.start([history])
        imports.wait()
    assert [each.failures for each in imports.reports] == [{"Claude Code": "cannot sort"}]
