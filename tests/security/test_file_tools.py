"""The file tools follow the same policy as commands: secrets are hidden in every mode."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from hermes_core.config.file import ConfigFile
from security.conftest import SECRET, CanaryHome
from support.agent_conversation import open_conversation, tool_call_step

MODES = ("plan", "workspace", "full")
FLIP = """
import os
while True:
    for target in ("plain", os.path.expanduser("~/.ssh")):
        os.symlink(target, "new")
        os.rename("new", "link")
"""


def run_tool(canary: CanaryHome, mode: str, name: str, *calls: dict[str, Any]) -> list[str]:
    ConfigFile.of_home().set("agent.approvals", mode)
    step = tool_call_step(name, *calls)
    with open_conversation(canary.workspace, step, reply="always") as agent:
        return [json.dumps(result) for result in agent.results()]


@pytest.mark.parametrize("mode", MODES)
def test_no_secret_is_read(canary: CanaryHome, mode: str) -> None:
    (canary.workspace / "link").symlink_to(canary.home / ".ssh")
    os.link(canary.hermes / ".env", canary.workspace / "notes.txt")
    paths = [
        *map(str, canary.secrets),
        "link/id_ed25519",
        "notes.txt",
        "../.hermes/.env",
        "~/.ssh/id_ed25519",
        str(canary.hermes / "state.db"),
        str(canary.hermes),
    ]
    for result in run_tool(canary, mode, "read_file", *({"path": path} for path in paths)):
        assert SECRET not in result
        assert "cannot open it" in result


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_a_search_finds_no_secret(
    canary: CanaryHome, has_ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ripgrep:
        monkeypatch.setattr("hermes_core.system_programs.SYSTEM_FOLDERS", ())
    (canary.home / "visible.txt").write_text("TOKEN=shown\n")
    (canary.home / "keys").symlink_to(canary.home / ".ssh")
    os.link(canary.hermes / ".env", canary.home / "other-name.txt")
    results = run_tool(
        canary, "workspace", "search_files",
        {"pattern": "TOKEN", "path": str(canary.home)},
        {"pattern": "TOKEN", "path": str(canary.home / "keys")},
        {"pattern": "TOKEN", "path": str(canary.hermes)},
    )  # fmt: skip
    assert not any(SECRET in result for result in results)
    assert any("shown" in result for result in results)


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_a_link_that_changes_during_a_search_leads_to_no_secret(
    canary: CanaryHome, has_ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ripgrep:
        monkeypatch.setattr("hermes_core.system_programs.SYSTEM_FOLDERS", ())
    plain = canary.workspace / "plain"
    plain.mkdir()
    (plain / "id_ed25519").write_text("TOKEN=plain\n")
    (canary.workspace / "link").symlink_to("plain")
    (canary.workspace / "flip.py").write_text(FLIP)
    ConfigFile.of_home().set("agent.approvals", "workspace")
    searches = [{"pattern": "TOKEN", "path": "link/id_ed25519"}, {"pattern": "TOKEN", "path": "."}]
    with open_conversation(
        canary.workspace,
        tool_call_step("terminal", {"command": "python3 flip.py", "background": True}),
        *(tool_call_step("search_files", *searches * 5) for _ in range(12)),
    ) as agent:
        results = json.dumps(agent.results())
    assert "TOKEN=plain" in results
    assert SECRET not in results


def test_no_tool_reads_the_environment_of_a_process(canary: CanaryHome) -> None:
    paths = ("/proc/self/environ", "/proc/thread-self/environ", f"/proc/{os.getpid()}/environ")
    searches = [{"pattern": SECRET, "path": path} for path in (*paths, "/proc/self")]
    reads = [{"path": path} for path in (*paths, f"/proc/{os.getpid()}/maps")]
    for result in run_tool(canary, "full", "search_files", *searches):
        assert '"matches": [' not in result
    for result in run_tool(canary, "full", "read_file", *reads):
        assert "cannot open it" in result


@pytest.mark.parametrize("mode", MODES)
def test_nothing_of_hermes_is_written(canary: CanaryHome, mode: str) -> None:
    targets = [canary.hermes / name for name in (".env", "config.yaml", "approvals.json", "new")]
    ConfigFile.of_home().set("agent.approvals", mode)
    before = {target: target.read_text() if target.exists() else None for target in targets}
    calls = [{"path": str(target), "content": "x"} for target in targets]
    run_tool(canary, mode, "write_file", *calls)
    assert {target: target.read_text() if target.exists() else None for target in targets} == before
