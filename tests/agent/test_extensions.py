"""The examples in docs/how-to/extend-the-agent.md work as they are written there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from hermes_agent.context.window import PROFILES
from hermes_agent.skills import DESCRIPTION_CHARACTERS
from support.agent_conversation import open_conversation, tool_call_step
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "extend-the-agent.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
SKILL = next(text for kind, text in BLOCKS if kind == "markdown")
CONFIG = next(text for kind, text in BLOCKS if kind == "yaml")
PLUGIN, SERVER = (text for kind, text in BLOCKS if kind == "python")


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[None]:
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


def test_the_skill(hermes_home: Path, tmp_path: Path) -> None:
    folder = hermes_home / "skills" / "writing" / "release-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "example.md").write_text("- It works.")
    with open_conversation(
        tmp_path, tool_call_step("skill_view", {"name": "release-notes"})
    ) as conversation:
        (result,) = conversation.results()
        assert "- release-notes: Write the notes of a release" in conversation.prompt()
    assert result["files"] == ["example.md"]
    assert result["content"].startswith("1. Take the commits")


def test_the_tool_in_a_plugin(hermes_home: Path, tmp_path: Path) -> None:
    make_plugin(hermes_home, "dice", PLUGIN, "")
    (hermes_home / "config.yaml").write_text("plugins: {enabled: [dice]}\n")
    with open_conversation(tmp_path, tool_call_step("roll_dice", {"sides": 1})) as conversation:
        assert conversation.results() == [{"rolled": 1}]


def test_the_mcp_server(hermes_home: Path, tmp_path: Path) -> None:
    program = tmp_path / "weather.py"
    program.write_text(SERVER)
    config = CONFIG.replace("/home/me/weather.py", str(program))
    (hermes_home / "config.yaml").write_text(config.replace("python3", sys.executable))
    forecast = {"name": "weather/forecast", "arguments": {"city": "Bergen"}}
    steps = [
        tool_call_step("find_tools", {"query": "weather tomorrow"}),
        tool_call_step("call_tool", forecast),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        results, result = conversation.results()
        assert conversation.prompter.requests == []
    assert [tool["name"] for tool in results["tools"]] == ["weather/forecast"]
    assert result["result"] == "Tomorrow it rains in Bergen."


def test_the_documented_limits_match_the_code() -> None:
    assert f"{DESCRIPTION_CHARACTERS:,} characters" in TEXT
    assert f"{PROFILES[-1].skills_characters:,} characters" in TEXT
