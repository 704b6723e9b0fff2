"""`hermes mcp add`, `list`, `get`, `remove` and `test`, as real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from support.command_line import Hermes

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
CONFIG = "# mine\nllm:\n  model: a  # why\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_a_server_is_added_tested_listed_and_removed(
    hermes: Hermes, project: Path, hermes_home: Path
) -> None:
    hermes_home.mkdir(parents=True, exist_ok=True)
    (hermes_home / "config.yaml").write_text(CONFIG)
    command = (sys.executable, str(SERVER), "stdio")
    added = hermes("mcp", "add", "shop", "--env", "API_TOKEN=abc", "-e", "A=1", "--", *command)
    assert added.code == 0, added.err
    assert "API_TOKEN is stored as plain text" in added.err
    assert "${API_TOKEN}" in added.err
    block = ConfigFile.of_home().block("mcp_servers")
    env = {"API_TOKEN": "abc", "A": "1"}
    assert block == {"shop": {"command": command[0], "args": [*command[1:]], "env": env}}
    assert (hermes_home / "config.yaml").read_text().startswith(CONFIG)
    tested = hermes("mcp", "test", "shop", "--json")
    result = json.loads(tested.out)
    assert result["ok"], result
    assert "shop/price" in [tool["name"] for tool in result["tools"]]
    (listed,) = json.loads(hermes("mcp", "list", "--json").out)
    assert (listed["name"], listed["state"]) == ("shop", "enabled")
    shown = hermes("mcp", "get", "shop")
    assert "abc" not in shown.out
    assert "mcp_server.py stdio" in shown.out
    assert hermes("mcp", "add", "shop", "--", "x").code == 2
    assert hermes("mcp", "remove", "shop").code == 0
    assert hermes("mcp", "remove", "shop").code == 2
    assert not ConfigFile.of_home().block("mcp_servers")
    assert json.loads(hermes("mcp", "list", "--json").out) == []
    del project


def test_a_server_of_a_project_is_used_after_trust(hermes: Hermes, project: Path) -> None:
    command = (sys.executable, str(SERVER), "stdio")
    added = hermes("mcp", "add", "shop", "--project", "--", *command)
    assert added.code == 0, added.err
    assert "hermes trust" in added.out
    document = json.loads((project / ".mcp.json").read_text())
    assert document["mcpServers"]["shop"]["command"] == command[0]
    (listed,) = json.loads(hermes("mcp", "list", "--json").out)
    assert listed["state"] == "not trusted"
    refused = hermes("mcp", "test", "shop")
    assert refused.code == 1
    assert "hermes trust" in refused.err
    assert hermes("trust", "--yes").code == 0
    tested = hermes("mcp", "test", "shop")
    assert tested.code == 0, tested.err
    assert "price" in tested.out
    assert hermes("mcp", "remove", "shop", "--project").code == 0
    assert json.loads((project / ".mcp.json").read_text()) == {"mcpServers": {}}


@pytest.mark.usefixtures("project")
def test_mistakes_are_explained_and_change_nothing(hermes: Hermes, hermes_home: Path) -> None:
    for arguments, message in (
        (["add", "x"], "either a command after"),
        (["add", "x", "--url", "http://a", "--", "b"], "either a command after"),
        (["add", "x", "--url", "ftp://a"], "http://"),
        (["add", "a b", "--", "b"], "A name has"),
        (["add", "x", "--env", "A", "--", "b"], "--env NAME=VALUE"),
        (["add", "--", "b"], "No server name given"),
        (["get", "x"], "No MCP server"),
        (["remove", "x"], "hermes mcp list"),
    ):
        refused = hermes("mcp", *arguments)
        assert refused.code == 2, arguments
        assert message in refused.err
    assert not (hermes_home / "config.yaml").exists()
    broken = ("mcp", "add", "broken", "--", "/no/such/program", "--option")
    assert hermes(*broken).code == 0
    failed = hermes("mcp", "test", "broken", "--timeout", "10")
    assert failed.code == 1
    assert "broken" in failed.err
    added = hermes("mcp", "add")
    assert "The MCP library" in added.out
