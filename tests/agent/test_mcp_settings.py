"""Parsing of the MCP servers in config.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_agent.mcp.config import KEYS, parse_servers
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import BLOCKS
from hermes_core.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_a_program_and_an_address_are_read() -> None:
    program, web = parse_servers(
        {
            "web": {
                "url": "https://x.example/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"},
                "timeout": 5,
                "connect_timeout": 1.5,
            },
            "program": {
                "command": "npx",
                "args": ["-y", "a", 5],
                "env": {"A": "${TOKEN}"},
                "cwd": "~/x",
            },
        },
        {"TOKEN": "secret"},
    )
    assert program.command == ("npx", "-y", "a", "5")
    assert program.env == (("A", "secret"),)
    assert program.cwd == Path.home() / "x"
    assert web.headers == (("Authorization", "Bearer secret"),)
    assert (web.call_seconds, web.connect_seconds) == (5.0, 1.5)
    assert not program.problem + web.problem


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (None, "command or url"),
        ({}, "command or url"),
        ({"command": "a", "url": "http://b"}, "either command or url"),
        ({"command": ["a"]}, "command must be a string"),
        ({"command": "a", "args": "b"}, "args must be a list"),
        ({"command": "a", "env": ["b"]}, "env must be a mapping"),
        ({"command": "a", "timeout": "soon"}, "timeout must be"),
        ({"command": "a", "timeout": 0}, "timeout must be"),
        ({"command": "a", "env": {"B": "${NOT_THERE}"}}, "NOT_THERE is set neither"),
        ({"url": "ftp://x"}, "http://"),
    ],
)
def test_a_mistake_is_reported_with_its_position(fields: Any, problem: str) -> None:
    (result,) = parse_servers({"mine": fields}, {})
    assert problem in result.problem
    assert "mcp_servers.mine in config.yaml" in result.problem


def test_a_name_without_a_usable_form_is_refused() -> None:
    assert parse_servers({"a/b": {"command": "x"}}, {})[0].problem


def test_a_server_that_is_switched_off_is_not_there() -> None:
    assert parse_servers({"mine": {"command": "a", "enabled": False}}, {}) == []


def test_variables_are_read_from_the_environment_and_the_secrets_file(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hermes_home / ".env").write_text("ONE=file\nTWO=file\n")
    monkeypatch.setenv("ONE", "environment")
    variables = ConfigFile.of_home().variables()
    assert (variables["ONE"], variables["TWO"]) == ("environment", "file")


def test_the_section_is_included_in_the_check(hermes_home: Path) -> None:
    path = hermes_home / "config.yaml"
    path.write_text("mcp_servers: {shop: {command: x}}\n")
    path.chmod(0o600)
    config = ConfigFile.of_home()
    assert config.check() == []
    assert config.block("mcp_servers") == {"shop": {"command": "x"}}


def test_a_section_that_is_not_a_block_is_an_error(hermes_home: Path) -> None:
    path = hermes_home / "config.yaml"
    path.write_text("mcp_servers: [a]\n")
    path.chmod(0o600)
    config = ConfigFile.of_home()
    assert [problem.is_error for problem in config.check()] == [True]
    with pytest.raises(ConfigError, match="must be a block"):
        config.block("mcp_servers")


def test_every_key_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    for name, meaning in BLOCKS.items():
        section = text.partition(f"## `{name}`")[2]
        assert meaning in " ".join(section.split())
    for key in KEYS:
        assert f"| `{key}` |" in text.partition("## `mcp_servers`")[2], key
