"""The list of allowed hosts: a proxy lets commands reach these, and no other."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING

import pytest

from hermes_agent.sandbox.host_proxy import is_allowed, is_public
from hermes_core.config.file import ConfigFile
from support.agent_conversation import open_conversation, tool_call_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from security.conftest import CanaryHome

TUNNEL = """
import os, socket
host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
connection = socket.create_connection((host, int(port)), 20)
connection.sendall(b"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n")
print(connection.recv(1000).decode().splitlines()[0])
connection.sendall(b"GET /tunnel HTTP/1.0\\r\\n\\r\\n")
print(connection.recv(1000).decode().splitlines()[0])
"""

PAGE = """
import os, urllib.request
os.environ["NO_PROXY"] = os.environ["no_proxy"] = ""
print(urllib.request.urlopen("http://127.0.0.1:{port}/").read())
"""
CONNECT = """
import os, socket
host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
connection = socket.create_connection((host, int(port)), 20)
connection.sendall(b"CONNECT {target} HTTP/1.1\\r\\n\\r\\n")
print(connection.recv(1000).decode())
"""


class Site(http.server.BaseHTTPRequestHandler):
    paths: list[str]

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the site\n")

    def log_message(self, *_args: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[tuple[int, list[str]]]:
    paths: list[str] = []
    handler = type("OneSite", (Site,), {"paths": paths})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port, paths
        server.shutdown()
        thread.join()


def run(
    canary: CanaryHome, hosts: str, *commands: str, mode: str = "workspace"
) -> tuple[list[dict[str, object]], int]:
    """The results of commands that a person denies, and how often that person was asked."""
    ConfigFile.of_home().set("agent.allowed_hosts", hosts)
    ConfigFile.of_home().set("agent.approvals", mode)
    steps = [tool_call_step("terminal", {"command": command}) for command in commands]
    with open_conversation(canary.workspace, *steps, reply="deny") as agent:
        results = agent.results()
        return results, len(agent.prompter.requests)


def test_an_allowed_host_is_reached_without_a_question(
    canary: CanaryHome, site: tuple[int, list[str]]
) -> None:
    port, paths = site
    (canary.workspace / "tunnel.py").write_text(TUNNEL.replace("{port}", str(port)))
    results, asked = run(
        canary,
        "127.0.0.1",
        f"curl -s --noproxy '' 'http://127.0.0.1:{port}/page?x=1'",
        "python3 tunnel.py",
    )
    assert results[0]["output"] == "hello from the site\n"
    assert str(results[1]["output"]).splitlines()[0].startswith("HTTP/1.1 200")
    assert str(results[1]["output"]).splitlines()[1].startswith("HTTP/1.0 200")
    assert paths == ["/page?x=1", "/tunnel"]
    assert asked == 0


def test_another_host_is_refused_and_asked_for(
    canary: CanaryHome, site: tuple[int, list[str]]
) -> None:
    port, paths = site
    results, asked = run(
        canary,
        "docs.example.org",
        f"curl -s --fail-with-body --noproxy '' http://127.0.0.1:{port}/",
    )
    assert "127.0.0.1 is not in agent.allowed_hosts" in str(results[0]["output"])
    assert (paths, asked) == ([], 1)


def test_an_allowed_name_does_not_lead_to_this_machine(
    canary: CanaryHome, site: tuple[int, list[str]]
) -> None:
    port, paths = site
    results, _ = run(canary, "localhost", f"curl -s --noproxy '' http://localhost:{port}/")
    assert "no public address" in str(results[0]["output"])
    assert paths == []


def test_without_the_proxy_an_allowed_host_is_out_of_reach(
    canary: CanaryHome, site: tuple[int, list[str]]
) -> None:
    port, paths = site
    run(
        canary, "127.0.0.1", f"curl -s http://127.0.0.1:{port}/", f"env -i curl -s 127.0.0.1:{port}"
    )
    assert paths == []


def test_plan_mode_reaches_no_host(canary: CanaryHome, site: tuple[int, list[str]]) -> None:
    port, paths = site
    (canary.workspace / "page.py").write_text(PAGE.replace("{port}", str(port)))
    run(canary, "127.0.0.1", "python3 page.py", mode="plan")
    assert paths == []


@pytest.mark.parametrize(
    "target",
    ["127.0.0.1:99999", "[:1", "127.0.0.1:x", "a..example.org:1", f"{'a' * 300}.example.org:1"],
)
def test_an_invalid_request_is_refused(
    canary: CanaryHome, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    (canary.workspace / "connect.py").write_text(CONNECT.replace("{target}", target))
    results, _ = run(canary, "127.0.0.1,*.example.org", "python3 connect.py")
    assert str(results[0]["output"]).startswith("HTTP/1.1 403"), results
    assert not caplog.records


def test_changes_elsewhere_are_still_asked_for_by_name(
    canary: CanaryHome, site: tuple[int, list[str]]
) -> None:
    port, paths = site
    _, asked = run(canary, "127.0.0.1", f"git push http://127.0.0.1:{port}/x.git HEAD")
    assert (paths, asked) == ([], 1)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("pages.example.org", True), ("a.b.example.org", True), ("example.org", False),
        ("evil-example.org", False), ("docs.example.com", True), ("DOCS.example.com.", True),
        ("docs.example.com.evil.org", False), ("", False),
    ],
)  # fmt: skip
def test_hosts_are_compared_by_whole_names(host: str, expected: bool) -> None:
    assert is_allowed(host, ("*.example.org", "docs.example.com")) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.215.14", True), ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("64:ff9b::5db8:d70e", True), ("127.0.0.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("224.0.0.1", False), ("::ffff:10.0.0.1", False), ("::1", False),
        ("64:ff9b::7f00:1", False), ("::127.0.0.1", False), ("fec0::1", False),
        ("2002:7f00:1::1", False), ("fe80::1%eth0", False),
    ],
)  # fmt: skip
def test_an_address_is_public_by_every_notation(address: str, expected: bool) -> None:
    assert is_public(address) is expected
