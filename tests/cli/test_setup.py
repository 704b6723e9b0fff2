"""`hermes setup` on a terminal: provider, hidden API key, tested model."""

from __future__ import annotations

import io
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from support.built_in_model import built_in_model
from support.scripted_server import ScriptServer
from support.terminal import on_terminal, wait_for_exit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pexpect

    from support.command_line import Hermes

SECRET = "sk-nobody-sees-this"
MENU = r"Number \[1-\d+\]: "


@pytest.fixture(autouse=True)
def _no_choice_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API", "MODEL", "BASE_URL", "KEY"):
        monkeypatch.delenv(f"HERMES_LLM_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[ScriptServer]:
    with ScriptServer(ModelScript.parse("steps: [{say: Hello there.}, {say: Again.}]")) as item:
        yield item


@pytest.fixture
def rejecting_server() -> Iterator[str]:
    """An address that takes no key."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Write no access log."""

    with HTTPServer(("127.0.0.1", 0), Refusing) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_address[1]}/v1"
        served.shutdown()


def choose(child: pexpect.spawn[str], choice: str) -> None:
    """Choose the menu entry that contains a text."""
    child.expect(MENU)
    match = re.search(rf"(\d+)\. [^\n]*{choice}", child.before or "")
    assert match, child.before
    child.sendline(match.group(1))


def config_text(home: Path) -> str:
    files = (home / "config.yaml", home / ".env")
    return "".join(file.read_text() for file in files if file.exists())


def test_an_endpoint_with_a_key_is_tested_and_saved(
    hermes: Hermes, server: ScriptServer, hermes_home: Path
) -> None:
    child = on_terminal("setup")
    child.logfile_read = output = io.StringIO()
    choose(child, "Another OpenAI-compatible")
    child.expect("Base URL")
    child.sendline(server.base_url)
    child.expect("none\\): ")
    child.sendline(SECRET)
    child.expect("1. scripted")
    child.expect("Model number or name")
    child.sendline("")
    child.expect("The model answered in .*: Hello there.")
    assert wait_for_exit(child) == 0
    assert SECRET not in output.getvalue()
    assert SECRET in (hermes_home / ".env").read_text()
    assert SECRET not in (hermes_home / "config.yaml").read_text()
    assert hermes("chat", "-q", "hi").out == "Again.\n"


def test_a_server_on_this_machine_is_offered(server: ScriptServer, hermes_home: Path) -> None:
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    child = on_terminal("setup", OLLAMA_HOST=host)
    choose(child, "Ollama")
    child.expect("Model number or name")
    child.sendline("1")
    child.expect("Using scripted")
    assert wait_for_exit(child) == 0
    assert server.base_url in config_text(hermes_home)


def test_a_rejected_key_is_prompted_for_again(rejecting_server: str, hermes_home: Path) -> None:
    child = on_terminal("setup")
    choose(child, "Another OpenAI-compatible")
    child.expect("Base URL")
    child.sendline("no address")
    child.expect("must start with http")
    child.sendline(rejecting_server)
    for _ in range(3):
        child.expect("none\\): ")
        child.sendline("wrong")
        child.expect("Authentication failed")
    assert wait_for_exit(child) == 2
    assert config_text(hermes_home) == ""


def test_a_failing_model_is_saved_only_on_request(hermes_home: Path) -> None:
    with ScriptServer(ModelScript.parse("steps: [{fail: {status: 402}}]")) as server:
        child = on_terminal("setup")
        choose(child, "Another OpenAI-compatible")
        child.expect("Base URL")
        child.sendline(server.base_url)
        child.expect("none\\): ")
        child.sendline("")
        child.expect("Model number or name")
        child.sendline("a-name")
        child.expect("no credit")
        child.expect("Save it anyway")
        child.sendline("")
        assert wait_for_exit(child) == 1
    assert config_text(hermes_home) == ""


def test_an_unreachable_endpoint_changes_nothing(hermes_home: Path) -> None:
    child = on_terminal("setup")
    choose(child, "Another OpenAI-compatible")
    child.expect("Base URL")
    child.sendline("http://127.0.0.1:9/v1")
    child.expect("none\\): ")
    child.sendline("")
    child.expect("Cannot connect")
    assert wait_for_exit(child) == 2
    assert config_text(hermes_home) == ""


@pytest.mark.parametrize(("key", "code"), [("\x04", 2), ("\x03", 130)])
def test_leaving_changes_nothing(key: str, code: int, hermes_home: Path) -> None:
    child = on_terminal("setup")
    child.expect(MENU)
    child.send(key)
    assert wait_for_exit(child) == code
    assert config_text(hermes_home) == ""


def test_the_built_in_model_needs_no_key(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "models").symlink_to(built_in_model().folder.parent)
    child = on_terminal("setup")
    choose(child, "Built-in demo")
    child.expect(r"only a demo: .* \w+\r\n\w+ .*\.\r\n")  # broken between words
    child.expect("Using smollm2")
    assert wait_for_exit(child) == 0
    assert "smollm2" in hermes("models", "list").out.splitlines()[1]


def test_without_a_terminal_the_error_names_the_settings(hermes: Hermes) -> None:
    result = hermes("setup")
    assert result.code == 2
    assert "ANTHROPIC_API_KEY" in result.out
    assert "hermes models use" in result.out
