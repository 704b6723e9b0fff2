"""Parts of `hermes acp` without a process: the library, servers of the editor, what is shown."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from hermes_acp.daemon_link import SessionEvents
from hermes_acp.server import require_pipes
from hermes_acp.tool_calls import ShownCalls
from hermes_agent.mcp.config import McpServerConfig
from hermes_agent.mcp.given_servers import parse_given_servers, with_given
from hermes_cli.commands.chat import acp as command
from hermes_cli.output import CommandOutput
from hermes_core.errors import UsageError
from tui_gateway.live_session import replaced_text
from tui_gateway.protocol import MessageDelta, SteerRead, ToolComplete, ToolStart, ToolText

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


def test_check_reports_the_installed_library(hermes: Hermes) -> None:
    assert "agent-client-protocol 0." in hermes("acp", "--check").out
    assert json.loads(hermes("acp", "--check", "--json").out)["installed"] is True


@pytest.mark.parametrize("is_check", [True, False])
def test_a_missing_library_is_reported_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, *, is_check: bool
) -> None:
    monkeypatch.setattr(command, "SDK", command.SDK._replace(imported="no_such_module"))
    arguments = argparse.Namespace(install=False, check=is_check, json=False)
    with pytest.raises(UsageError, match="hermes acp --install"):
        command.run(arguments, CommandOutput())


def test_files_instead_of_pipes_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file, pytest.raises(UsageError, match="needs pipes"):
        require_pipes(file.fileno())


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ("{", "not valid JSON"),
        ('{"name": "x"}', "a JSON list"),
        ('[{"name": "a/b", "command": "x"}]', "Invalid name"),
        ('[{"name": "a"}]', "either a command or a URL"),
        ('[{"name": "a", "url": "file:///x"}]', "must start with http"),
    ],
)
def test_invalid_servers_of_a_client_are_refused(servers: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_given_servers(servers)


def test_a_server_of_a_client_gets_no_setting_and_no_rule_of_a_configured_one() -> None:
    text = '[{"name": "shop", "command": "run", "args": ["${SECRET}"], "env": {"A": "${SECRET}"}}]'
    given = parse_given_servers(text)
    assert given[0].command == ("run", "${SECRET}")
    assert given[0].env == (("A", "${SECRET}"),)
    assert given[0].is_sandboxed
    other = parse_given_servers('[{"name": "shop", "command": "other"}]')
    assert given[0].rule_name != other[0].rule_name
    configured, renamed = with_given([McpServerConfig("shop", ("trusted",))], given)
    assert configured.command == ("trusted",)
    assert renamed.name == given[0].rule_name


def test_the_replaced_text_is_not_that_of_a_hidden_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    call = ToolStart("1", "write_file", "", '{"path": "a.txt", "content": "new"}')
    assert replaced_text(call, tmp_path, lambda _path, _cwd: False) == "old"
    assert replaced_text(call, tmp_path, lambda _path, _cwd: True) is None
    for arguments in ("[]", "{", '{"path": "none"}', '{"path": 3}'):
        broken = ToolStart("1", "write_file", "", arguments)
        assert replaced_text(broken, tmp_path, lambda _path, _cwd: False) is None


def test_calls_with_the_same_id_are_shown_apart(tmp_path: Path) -> None:
    calls = ShownCalls(tmp_path)
    call = ToolStart("call_0", "terminal", "terminal ls", '{"command": "ls"}')
    shown = []
    for output in ("one", "two"):
        shown.append(calls.start(call).tool_call_id)
        update = calls.add_output(ToolText("call_0", output))
        assert update is not None
        assert update.tool_call_id == shown[-1]
        result = json.dumps({"output": output, "exit_code": 0, "error": None})
        assert (
            calls.finish(ToolComplete("call_0", "terminal", result, 0.1)).tool_call_id == shown[-1]
        )
    assert len(set(shown)) == 2


async def test_pieces_of_text_that_wait_are_joined() -> None:
    queue = SessionEvents()
    for event in (MessageDelta("a"), MessageDelta("b"), SteerRead(), MessageDelta("c")):
        queue.put(event)
    events = [await queue.get() for _ in range(3)]
    assert events == [MessageDelta("ab"), SteerRead(), MessageDelta("c")]
