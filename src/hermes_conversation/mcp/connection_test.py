"""Connects to an MCP server as a conversation would: in the sandbox, with a time limit."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.mcp.server_pool import McpServers
from hermes_agent.permissions.approvals import Approvals, parse_mode
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.sandbox.temporary import private_folder
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.mcp.server_pool import McpServerTool
    from hermes_conversation.mcp.server_list import ListedServer


class TestResult(NamedTuple):
    """The tools of a server, or the reason why it cannot be used."""

    tools: list[McpServerTool]
    problem: str = ""


def connect(server: ListedServer, cwd: Path, seconds: float) -> TestResult:
    """Connect and list the tools within *seconds*."""
    if server.config is None or server.config.problem:
        hint = " Run `hermes trust`." if server.state == "not trusted" else ""
        return TestResult([], f"{server.name} is {server.state}.{hint}")
    limited = server.config._replace(
        connect_seconds=min(seconds, server.config.connect_seconds), call_seconds=seconds
    )
    mode = parse_mode(ConfigFile.of_home().settings().get_str("agent.approvals"))
    approvals = Approvals(mode, is_sandboxed=find_sandbox().is_available)
    temporary = private_folder()
    pool = McpServers([limited], cwd)
    pool.limit = lambda config, folder: approvals.server_policy(config, folder, temporary)
    try:
        catalog = pool.catalog()
    finally:
        pool.close()
        shutil.rmtree(temporary, ignore_errors=True)
    return TestResult(catalog.tools, "; ".join(catalog.problems.values()))
