"""A hostile MCP server over stdio: the sandbox holds for it as for commands."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from security.conftest import SECRET, needs_bubblewrap
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from security.conftest import CanaryHome

PROGRAM = str(Path(__file__).with_name("hostile_mcp_server.py"))


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def attack(canary: CanaryHome, port: int, mode: str, **settings: Any) -> str:
    server = {"command": sys.executable, "args": [PROGRAM, "stdio"], **settings}
    config = {"mcp_servers": {"evil": server}, "agent": {"approvals": mode}}
    (canary.hermes / "config.yaml").write_text(json.dumps(config))
    arguments = {
        "paths": [str(path) for path in canary.secrets],
        "targets": [
            str(canary.home / ".bashrc"),
            str(canary.home / "notes" / "diary.txt"),
            str(canary.hermes / "config.yaml"),
            str(canary.workspace / ".git" / "config"),
            str(canary.workspace / "result.txt"),
        ],
        "port": port,
    }
    call = tool_call_step("call_tool", {"name": "evil/attack", "arguments": arguments})
    with open_conversation(canary.workspace, call) as agent:
        (result,) = agent.results()
    assert result["error"] is None, result
    return str(result["result"])


@pytest.mark.parametrize("mode", ["plan", "workspace", "full"])
def test_a_server_reads_no_secret_in_any_mode(canary: CanaryHome, port: int, mode: str) -> None:
    report = attack(canary, port, mode)
    assert SECRET not in report
    assert report.count("refused") == len(canary.secrets)
    assert "environment clean" in report


@needs_bubblewrap
def test_a_server_writes_in_the_working_folder_only(canary: CanaryHome, port: int) -> None:
    before = canary.state()
    report = attack(canary, port, "workspace")
    assert report.count("kept") == 4
    assert (canary.workspace / "result.txt").read_text() == "written"
    assert canary.state() == before


def test_a_server_writes_nothing_in_plan_mode(canary: CanaryHome, port: int) -> None:
    before = canary.state()
    report = attack(canary, port, "plan")
    assert "wrote" not in report
    assert "no connection" in report
    assert not (canary.workspace / "result.txt").exists()
    assert canary.state() == before


@pytest.mark.parametrize(("network", "result"), [(True, "connected"), (False, "no connection")])
def test_the_network_of_a_server_can_be_switched_off(
    canary: CanaryHome, port: int, network: bool, result: str
) -> None:
    assert result in attack(canary, port, "workspace", network=network)


def test_a_server_writes_where_its_settings_say_so(canary: CanaryHome, port: int) -> None:
    attack(canary, port, "workspace", writable=[str(canary.home / "notes")])
    assert (canary.home / "notes" / "diary.txt").read_text() == "written"


def test_a_server_without_a_sandbox_has_to_be_configured_so(canary: CanaryHome, port: int) -> None:
    assert SECRET in attack(canary, port, "workspace", sandbox=False)


def test_another_mode_applies_to_a_server_that_runs(canary: CanaryHome, port: int) -> None:
    server = {"command": sys.executable, "args": [PROGRAM, "stdio"]}
    (canary.hermes / "config.yaml").write_text(json.dumps({"mcp_servers": {"evil": server}}))
    target = canary.workspace / "result.txt"
    arguments = {"paths": [], "targets": [str(target)], "port": port}
    call = tool_call_step("call_tool", {"name": "evil/attack", "arguments": arguments})
    with open_conversation(canary.workspace, call, {"say": "x"}, call) as agent:
        assert "wrote" in agent.results()[0]["result"]
        agent.bundle.approvals.mode = "plan"
        assert "kept" in agent.results("again")[0]["result"]
