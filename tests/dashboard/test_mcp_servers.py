"""MCP servers on the page: listed without credentials, requested, tested, removed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from support.command_line import run_hermes
from support.mcp_process import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

SERVERS = "/api/mcp-servers"


def test_mcp_servers_are_listed_without_credentials(
    client: httpx.Client, hermes_home: Path
) -> None:
    assert client.get(SERVERS).json()["items"] == []
    (hermes_home / "config.yaml").write_text(
        "mcp_servers:\n"
        "  files: {command: mcp-files, args: [--token, hunter2], network: false}\n"
        "  odd: {}\n"
        "  off: {command: mcp-off, enabled: false}\n"
        "  web: {url: 'https://ada:hunter2@mcp.example/x?key=hunter2'}\n"
    )
    answer = client.get(SERVERS)
    files, odd, off, web = sorted(answer.json()["items"], key=lambda each: str(each["name"]))
    assert (files["program"], files["is_sandboxed"], files["has_network"]) == (
        "mcp-files", True, False,
    )  # fmt: skip
    assert (odd["state"], "either command or url" in odd["problem"]) == ("invalid", True)
    assert (off["state"], off["program"]) == ("disabled", "mcp-off")
    assert (web["kind"], web["program"]) == ("url", "mcp.example")
    assert "hunter2" not in answer.text


def test_a_server_is_written_after_a_confirmation_then_tested_and_removed(
    client: httpx.Client,
) -> None:
    body = {
        "name": "shop",
        "command": f"{sys.executable} '{PROGRAM}' stdio",
        "variables": {"SHOP_TOKEN": "hunter2"},
    }
    asked = client.post(SERVERS, json=body)
    assert (asked.status_code, asked.json()["kind"]) == (202, "mcp_server"), asked.text
    assert "stdio (with SHOP_TOKEN)" in asked.json()["new"]
    assert "hunter2" not in client.get("/api/pending-changes").text
    assert client.get(SERVERS).json()["items"] == []
    done = run_hermes("dashboard", "confirm", asked.json()["code"], "--yes")
    assert (done.code, "MCP server shop" in done.out) == (0, True), done.err
    entry = ConfigFile.of_home().block("mcp_servers")["shop"]
    assert entry == {
        "command": sys.executable,
        "args": [PROGRAM, "stdio"],
        "env": {"SHOP_TOKEN": "hunter2"},
    }
    tested = client.post(f"{SERVERS}/shop/test").json()
    assert tested["is_ok"], tested
    assert "price" in [tool["name"] for tool in tested["tools"]]
    again = client.post(SERVERS, json=body)
    assert (again.status_code, "already exists" in again.json()["detail"]) == (400, True)
    assert client.delete(f"{SERVERS}/shop").status_code == 204
    assert client.delete(f"{SERVERS}/shop").status_code == 404
    assert client.post(f"{SERVERS}/shop/test").status_code == 404


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"command": "a", "url": "https://x.example"}, "either a command or a URL"),
        ({}, "either a command or a URL"),
        ({"command": "a 'b"}, "cannot be split"),
        ({"url": "ftp://x.example"}, "http"),
        ({"name": "a b", "command": "x"}, "letters, digits"),
        ({"command": "a\x00b"}, "control characters"),
        ({"url": "http://"}, "host"),
        ({"command": "x", "variables": {"A=B": "1"}}, "name of a variable"),
        ({"command": "x", "variables": {"A\nB": "1"}}, "name of a variable"),
        ({"url": "https://x.example", "variables": {"A b": "1"}}, "name of a header"),
    ],
)
def test_a_server_that_cannot_work_is_refused(
    client: httpx.Client, fields: dict[str, object], reason: str
) -> None:
    refused = client.post(SERVERS, json={"name": "shop", **fields})
    assert (refused.status_code, reason in refused.json()["detail"]) == (400, True), refused.text


def test_a_server_that_does_not_start_says_why(client: httpx.Client) -> None:
    ConfigFile.of_home().set_entry("mcp_servers", "gone", {"command": "/nothing/here"})
    tested = client.post(f"{SERVERS}/gone/test").json()
    assert (tested["is_ok"], tested["tools"], "gone" in tested["problem"]) == (False, [], True)


def test_a_password_in_a_url_is_not_shown(client: httpx.Client) -> None:
    body = {"name": "web", "url": "https://ada:hunter2@mcp.example/x"}
    asked = client.post(SERVERS, json=body)
    assert (asked.status_code, asked.json()["new"]) == (202, "https://…@mcp.example/x")
    assert run_hermes("dashboard", "confirm", asked.json()["code"], "--yes").code == 0
    assert ConfigFile.of_home().block("mcp_servers")["web"] == {"url": body["url"]}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "a b", "command": "x"}, "name"),
        ({"name": "taken", "command": "x"}, "name"),
        ({"command": "'unclosed"}, "command"),
        ({"command": "x\x01"}, "command"),
        ({"url": "ftp://mcp.example"}, "url"),
        ({"url": "https://"}, "url"),
        ({"command": "x", "variables": {"A B": "1"}}, "variables"),
        ({"url": "https://mcp.example", "variables": {"Ä": "1"}}, "variables"),
    ],
)
def test_a_refusal_names_the_field_that_is_wrong(
    client: httpx.Client, fields: dict[str, object], field: str
) -> None:
    ConfigFile.of_home().set_entry("mcp_servers", "taken", {"command": "x"})
    answer = client.post(SERVERS, json={"name": "shop", **fields})
    assert (answer.status_code, answer.json().get("field")) == (400, field), answer.text
