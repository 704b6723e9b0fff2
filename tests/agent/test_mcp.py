"""MCP servers: real processes over pipes and HTTP, found, called, lost, and ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.mcp.config import McpServerConfig
from hermes_agent.mcp.server_pool import McpServers
from hermes_agent.mcp.tools import result_text
from hermes_agent.tools.base import ToolError
from hermes_agent.turn_control import Cancel
from support.mcp_process import LIBRARY_PROGRAM, PROGRAM, is_over
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHOP = McpServerConfig("shop", (sys.executable, PROGRAM, "stdio"))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., McpServers]]:
    started: list[McpServers] = []

    def make(*servers: McpServerConfig) -> McpServers:
        started.append(McpServers(list(servers), tmp_path))
        return started[-1]

    yield make
    for item in started:
        item.close()


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(port: int) -> Iterator[McpServerConfig]:
    """The same server over HTTP."""
    process = subprocess.Popen([sys.executable, LIBRARY_PROGRAM, "http", "--port", str(port)])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield McpServerConfig("web", url=f"http://127.0.0.1:{port}/mcp", headers=(("X-Key", "secret"),))
    process.kill()
    process.wait()


def call_text(servers: McpServers, name: str, **arguments: Any) -> str:
    return result_text(servers.call(name, arguments))


def working_folder(servers: McpServers, name: str = "shop") -> dict[str, str]:
    return dict(json.loads(call_text(servers, f"{name}/environment")))


@pytest.mark.parametrize("program", [PROGRAM, LIBRARY_PROGRAM], ids=["small", "library"])
def test_tools_are_found_and_called(begin: Callable[..., McpServers], program: str) -> None:
    servers = begin(SHOP._replace(command=(sys.executable, program, "stdio")))
    catalog = servers.catalog()
    offers = {offer.name: offer for offer in catalog.tools}
    assert offers["shop/price"].description == "Look up what an item costs."
    assert offers["shop/price"].only_reads
    assert not offers["shop/order"].only_reads
    assert offers["shop/order"].parameters["required"] == ["item"]
    assert catalog.problems == {}
    assert call_text(servers, "shop/price", item="tea") == "tea costs 3"


def test_an_http_server_may_disappear_and_come_back(begin: Callable[..., McpServers]) -> None:
    port = free_port()
    with serving(port) as server:
        servers = begin(server._replace(call_seconds=10))
        assert call_text(servers, "web/price", item="tea") == "tea costs 3"
        assert servers.tool("web/order").only_reads is False
    with pytest.raises(ToolError, match="web"):
        servers.call("web/price", {"item": "tea"})
    with serving(port):
        assert call_text(servers, "web/price", item="tea") == "tea costs 3"


def test_headers_reach_an_http_server(begin: Callable[..., McpServers]) -> None:
    with serving(free_port()) as server:
        headers = json.loads(call_text(begin(server), "web/headers"))
    assert headers["x-key"] == "secret"


def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    before = threading.active_count()
    servers = McpServers([SHOP], tmp_path)
    assert servers.names() == ["shop"]
    assert threading.active_count() == before
    servers.close()


def test_a_server_runs_in_the_working_folder_without_our_secrets(
    begin: Callable[..., McpServers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    servers = begin(SHOP, SHOP._replace(name="other", cwd=elsewhere, env=(("KIND", "tea"),)))
    assert working_folder(servers)["cwd"] == str(tmp_path)
    assert "OPENAI_API_KEY" not in working_folder(servers)
    assert working_folder(servers, "other")["cwd"] == str(elsewhere)
    assert working_folder(servers, "other")["KIND"] == "tea"


def test_events_other_than_text_are_described(begin: Callable[..., McpServers]) -> None:
    assert call_text(begin(SHOP), "shop/picture") == "[image, image/png, 30 bytes]"


def test_a_server_that_dies_during_a_call_is_reported_and_restarted(
    begin: Callable[..., McpServers],
) -> None:
    servers = begin(SHOP)
    with pytest.raises(ToolError, match="connection to shop was lost during the call"):
        servers.call("shop/die", {})
    assert call_text(servers, "shop/price", item="tea") == "tea costs 3"


def test_a_server_that_died_between_calls_is_started_again(
    begin: Callable[..., McpServers],
) -> None:
    servers = begin(SHOP)
    first = int(working_folder(servers)["pid"])
    os.kill(first, 9)
    assert is_over(first)
    assert int(working_folder(servers)["pid"]) != first


def test_an_unreachable_http_server_is_reported(begin: Callable[..., McpServers]) -> None:
    servers = begin(McpServerConfig("web", url=f"http://127.0.0.1:{free_port()}/mcp"))
    assert "web is unavailable" in servers.catalog().problems["web"]


def test_a_slow_call_ends_in_time_and_the_server_stays(begin: Callable[..., McpServers]) -> None:
    servers = begin(SHOP._replace(call_seconds=10.0))
    pid = working_folder(servers)["pid"]
    with pytest.raises(ToolError, match="shop did not answer within 10 s"):
        servers.call("shop/sleep", {"seconds": 600})
    assert working_folder(servers)["pid"] == pid


def test_a_slow_start_ends_in_time_and_leaves_nothing(
    begin: Callable[..., McpServers], tmp_path: Path
) -> None:
    slow = McpServerConfig(
        "slow", ("sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 600"), connect_seconds=1
    )
    assert "no answer within 1 s" in begin(slow).catalog().problems["slow"]
    assert is_over(int((tmp_path / "pid").read_text()))


# A server that answers only when two others have been started, too.
TOGETHER = """
touch $0/$$; until [ $(ls $0 | wc -l) = 3 ]; do sleep 0.02; done; exec "$@"
"""


def test_servers_are_connected_at_the_same_time(
    begin: Callable[..., McpServers], tmp_path: Path
) -> None:
    met = tmp_path / "met"
    met.mkdir()
    command = ("sh", "-c", TOGETHER, str(met), *SHOP.command)
    patient = SHOP._replace(command=command, connect_seconds=PATIENCE_SECONDS)
    servers = begin(*(patient._replace(name=name) for name in ("a", "b", "c")))
    assert servers.catalog().problems == {}


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (McpServerConfig("bad", ("no-such-program",)), "program not found: no-such-program"),
        (
            McpServerConfig("bad", ("sh", "-c", "echo no licence >&2; exit 3")),
            "Its error output: no licence",
        ),
        (
            McpServerConfig("bad", ("sh", "-c", "echo hello"), connect_seconds=5),
            "bad is unavailable",
        ),
        (McpServerConfig("bad", ("true",), cwd=Path("/nowhere")), "nowhere"),
        (McpServerConfig("bad", problem="mcp_servers.bad in config.yaml: no"), "config.yaml: no"),
    ],
)
def test_a_server_that_cannot_be_used_is_named_and_the_others_work(
    begin: Callable[..., McpServers], server: McpServerConfig, reason: str
) -> None:
    servers = begin(server, SHOP)
    catalog = servers.catalog()
    assert reason in catalog.problems["bad"]
    assert "shop/price" in [offer.name for offer in catalog.tools]
    with pytest.raises(ToolError, match="bad"):
        servers.call("bad/price", {})


@pytest.mark.parametrize("name", ["", "price", "shop", "shop/", "nobody/price", "shop/nothing"])
def test_an_unknown_name_is_answered_with_the_available_ones(
    begin: Callable[..., McpServers], name: str
) -> None:
    with pytest.raises(ToolError, match=r"shop"):
        begin(SHOP).tool(name)


def test_a_stop_ends_the_wait_for_a_call(begin: Callable[..., McpServers]) -> None:
    servers = begin(SHOP)
    servers.catalog()
    cancel = Cancel()
    threading.Timer(0.3, cancel.request, ["enough"]).start()
    with pytest.raises(ToolError, match="Stopped: enough"):
        servers.call("shop/sleep", {"seconds": 600}, cancel)
    assert call_text(servers, "shop/price", item="tea") == "tea costs 3"
