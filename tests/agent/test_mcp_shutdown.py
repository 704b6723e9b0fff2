"""However Hermes ends, no MCP server and nothing that one has started is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from hermes_agent.mcp.config import McpServerConfig
from hermes_agent.mcp.server_pool import McpServers
from hermes_agent.tools import process_groups
from hermes_agent.tools.base import ToolError
from support.command_line import command
from support.mcp_process import PROGRAM, is_over
from support.model_servers import model_argument, model_servers
from support.processes import is_command_running, is_running, unique_sleep
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

SHOP = McpServerConfig("shop", (sys.executable, PROGRAM, "stdio"))


def test_no_process_is_left_after_closing(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    servers = McpServers(
        [SHOP._replace(command=(*SHOP.command, "--leave-a-child", str(file)))], tmp_path
    )
    servers.catalog()
    server, child = map(int, file.read_text().split())
    assert process_groups.is_alive(server)
    servers.close()
    assert is_over(server)
    assert is_over(child)
    servers.close()
    with pytest.raises(ToolError, match="shutting down"):
        servers.catalog()


def test_closing_ends_a_call_that_is_under_way(tmp_path: Path) -> None:
    servers = McpServers([SHOP], tmp_path)
    servers.catalog()
    threading.Timer(0.3, servers.close).start()
    with pytest.raises(ToolError, match=r"shutting down|lost during the call"):
        servers.call("shop/sleep", {"seconds": 600})


# A server that answers as it should, and ignores the end of its input and every request to end.
STUBBORN = f"trap '' TERM HUP; {sys.executable} {PROGRAM} stdio; while :; do sleep 0.1; done"


def test_a_server_that_will_not_end_is_ended(tmp_path: Path) -> None:
    servers = McpServers([McpServerConfig("shop", ("sh", "-c", STUBBORN))], tmp_path)
    data = json.loads(servers.call("shop/environment", {}).content[0].text)  # type: ignore[union-attr]
    servers.close()
    assert is_over(int(data["pid"]))
    assert not process_groups.is_alive(int(data["parent"]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_no_process_is_left_when_a_conversation_is_ended_from_outside(
    hermes_home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "pids"
    child = unique_sleep()
    arguments = [PROGRAM, "stdio", "--leave-a-child", str(file), "--child", child]
    server = [sys.executable, *arguments]
    servers = {"shop": {"command": sys.executable, "args": arguments}}
    (hermes_home / "config.yaml").write_text(json.dumps({"mcp_servers": servers}))
    sleep = {"name": "shop/sleep", "arguments": {"seconds": 600}}
    steps = [{"calls": [{"name": "call_tool", "arguments": sleep}]}, {"say": "Done."}]
    with model_servers() as serve:
        process = subprocess.Popen(
            command("chat", "-q", "go", "--model", model_argument(serve(json.dumps(steps)))),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=tmp_path,
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (file.exists() and file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)  # so that the call is under way
        assert is_command_running(child)
        process.send_signal(number)
        process.wait(PATIENCE_SECONDS)
    wait_until(lambda: not is_command_running(child))
    wait_until(lambda: not is_running(server))
