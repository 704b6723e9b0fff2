"""Histories of other agents on the dashboard: listed and imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from support.claude_files import ClaudeFile
from support.waiting import wait_until

if TYPE_CHECKING:
    import httpx2 as httpx


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
