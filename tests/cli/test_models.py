"""`hermes models`, and the built-in model end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.local.built_in import DEMO_NOTICE
from hermes_agent.providers.scripted import ModelScript
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.built_in_model import built_in_model
from support.command_line import command
from support.scripted_server import ScriptServer
from support.terminal import interrupt, on_terminal, wait_for_exit
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes

SETTINGS = ("LLM_API", "LLM_MODEL", "LLM_BASE_URL", "LLM_KEY")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


@pytest.fixture(autouse=True)
def _no_choice_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(f"HERMES_{setting}" for setting in SETTINGS), *KEYS):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ScriptServer]:
    with ScriptServer(
        ModelScript.parse("steps: [{say: Hello there.}, {fail: {status: 401}}]")
    ) as item:
        yield item


@pytest.fixture
def installed_model(hermes_home: Path) -> None:
    """The built-in model in the home of the test, without fetching it again."""
    (hermes_home / "models").symlink_to(built_in_model().folder.parent)


def ollama(server: ScriptServer) -> dict[str, str]:
    return {"OLLAMA_HOST": server.base_url.removeprefix("http://").removesuffix("/v1")}


def list_models(hermes: Hermes, **environment: str) -> dict[str, Any]:
    result = hermes("models", "list", "--json", **environment)
    assert result.code == 0, result.err
    data: dict[str, Any] = json.loads(result.out)
    return data


def test_an_empty_list_has_a_hint(hermes: Hermes) -> None:
    result = hermes("models", "list")
    assert result.code == 0
    assert "hermes models get smollm2" in result.out
    assert "hermes setup" in result.err


def test_servers_on_this_machine_are_listed(hermes: Hermes, server: ScriptServer) -> None:
    (result,) = list_models(hermes, **ollama(server))["servers"]
    assert result == {"name": "Ollama", "base_url": server.base_url, "models": ["scripted"]}
    assert f"{server.base_url}#scripted" in hermes("models", "list", **ollama(server)).out


def test_a_model_that_is_used_answers(hermes: Hermes, server: ScriptServer) -> None:
    assert hermes("models", "use", f"{server.base_url}#scripted").code == 0
    chosen = list_models(hermes)["chosen"]
    assert (chosen["model"], chosen["base_url"]) == ("scripted", server.base_url)
    assert hermes("chat", "-q", "hi").out == "Hello there.\n"


def test_a_plain_name_refers_to_the_local_server(hermes: Hermes, server: ScriptServer) -> None:
    assert hermes("models", "use", "other", **ollama(server)).code == 0
    chosen = list_models(hermes)["chosen"]
    assert (chosen["model"], chosen["base_url"]) == ("other", server.base_url)


def test_a_key_is_never_printed_and_is_removed_when_the_base_url_changes(
    hermes: Hermes, hermes_home: Path
) -> None:
    hermes("models", "use", "http://127.0.0.1:9/v1#one")
    ConfigFile.of_home().set("llm.key", "secret-word")
    assert list_models(hermes)["chosen"]["has_key"]
    assert "secret-word" not in hermes("models", "list", "--json").out
    result = hermes("models", "use", "anthropic:two")
    assert "llm.key" in result.err
    assert "hermes setup" in result.err
    assert "secret-word" not in (hermes_home / ".env").read_text()
    assert not list_models(hermes)["chosen"]["has_key"]


def test_a_test_reports_its_duration_or_the_failure(hermes: Hermes, server: ScriptServer) -> None:
    name = f"{server.base_url}#scripted"
    result = hermes("models", "test", name)
    assert result.code == 0
    assert "Hello there." in result.out
    assert " s: " in result.out
    refused = hermes("models", "test", name)
    assert (refused.code, refused.out) == (1, "")
    assert "hermes setup" in refused.err
    unreachable = hermes("models", "test", "http://127.0.0.1:9/v1#x")
    assert unreachable.code == 1
    assert "Cannot connect" in unreachable.err


@pytest.mark.parametrize("host", ["münch..en", "😀..x"])
def test_an_address_that_no_request_can_have_is_reported(hermes: Hermes, host: str) -> None:
    hermes("models", "use", f"http://{host}/v1#gpt-test")
    for arguments in (["-p", "hello"], ["models", "test"]):
        done = hermes(*arguments)
        assert done.code != 0
        assert "Traceback" not in done.err
        assert f"'http://{host}/v1' is not a URL" in done.err + done.out
        assert "`hermes models use URL#NAME`" in done.err + done.out


def test_the_built_in_model_can_be_used_before_it_is_here(hermes: Hermes) -> None:
    result = hermes("models", "use", "smollm2")
    assert result.code == 0
    assert "hermes models get smollm2" in result.err
    chat = hermes("chat", "-q", "hi")
    assert chat.code == 1
    assert "hermes models get smollm2" in chat.err


@pytest.mark.usefixtures("installed_model")
def test_the_built_in_model_answers_without_any_setting(hermes: Hermes) -> None:
    assert list_models(hermes)["built_in"]["is_here"]
    result = hermes("chat", "-q", "hello")
    assert result.code == 0, result.err
    assert result.out.strip()
    assert result.err.count(DEMO_NOTICE) == 1
    again = hermes("chat", "-c", "-q", "hello")
    assert again.code == 0
    assert DEMO_NOTICE not in again.err


@pytest.mark.usefixtures("installed_model")
def test_a_local_server_takes_precedence_over_the_built_in_model(
    hermes: Hermes, server: ScriptServer
) -> None:
    assert hermes("chat", "-q", "hi", **ollama(server)).out == "Hello there.\n"


@pytest.mark.usefixtures("installed_model")
def test_the_built_in_model_can_be_tested_and_is_not_fetched_twice(hermes: Hermes) -> None:
    assert hermes("models", "test", "smollm2").code == 0
    result = hermes("models", "get", "smollm2")
    assert result.code == 0
    assert "already" in result.out
    assert DEMO_NOTICE in result.err


@pytest.mark.usefixtures("installed_model")
def test_interrupting_the_built_in_model_keeps_the_streamed_text() -> None:
    arguments = command("chat", "-q", "Tell me a very long story about the sea.")
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    output = os.read(process.stdout.fileno(), 10)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, err
    with SessionDB(is_recovering=False) as db:
        (row,) = db.list_sessions_rich(limit=1)
        last = db.get_messages(row["id"])[-1]
    assert last["content"].strip() == (output + out).decode().strip()
    assert last["finish_reason"] == "interrupted"


def test_without_a_model_a_terminal_is_offered_the_setup() -> None:
    child = on_terminal("chat", "-q", "hi")
    child.expect("Set one up now")
    child.sendline("n")
    child.expect("hermes setup")
    assert wait_for_exit(child) == 2


def test_enter_starts_with_the_built_in_model(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = built_in_model()
    monkeypatch.setenv("HERMES_LLM_BUILT_IN", "auto")
    child = on_terminal("chat", "-q", "hello")
    child.expect(r"built-in demo model \(127 MB download\)")
    (hermes_home / "models").symlink_to(model.folder.parent)  # as if it had been fetched
    child.sendline("")
    child.expect("only a demo")
    assert wait_for_exit(child) == 0
    with SessionDB() as db:
        (row,) = db.list_sessions_rich(limit=5)
        assert [message["role"] for message in db.get_messages(row["id"])] == ["user", "assistant"]


def test_the_setup_can_be_chosen_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_LLM_BUILT_IN", "auto")
    child = on_terminal("chat", "-q", "hello")
    child.expect("type s to set up")
    child.sendline("s")
    child.expect("Choose a provider")
    interrupt(child)


def test_the_end_of_input_downloads_nothing(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_LLM_BUILT_IN", "auto")
    child = on_terminal("chat", "-q", "hello")
    child.expect("type s to set up")
    child.sendeof()
    child.expect("No model is configured")
    assert wait_for_exit(child) == 2
    assert not (hermes_home / "models").exists()


@pytest.mark.parametrize("arguments", [["-p", "hi"], ["chat", "-q", "hi"]], ids=" ".join)
def test_without_a_network_the_sentence_says_what_to_do(
    hermes: Hermes, arguments: list[str]
) -> None:
    offline = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "PIP_NO_INDEX": "1"}
    result = hermes(*arguments, HERMES_LLM_BUILT_IN="auto", **offline)
    assert result.code == 2
    assert "downloading the built-in demo model (127 MB, once)" in result.err
    assert "No model is configured. Run `hermes setup`" in result.err


def test_the_download_can_be_switched_off(hermes: Hermes, hermes_home: Path) -> None:
    result = hermes("chat", "-q", "hi", HERMES_LLM_BUILT_IN="never")
    assert result.code == 2
    assert "downloading" not in result.err
    assert not (hermes_home / "models").exists()


def test_the_offer_is_carried_out(hermes_home: Path) -> None:
    model = built_in_model()
    child = on_terminal("chat", "-q", "hello")
    child.expect("Set one up now")
    (hermes_home / "models").symlink_to(model.folder.parent)  # as if it had been fetched
    child.sendline("y")
    child.expect(r"(\d+)\. Built-in demo")
    assert child.match is not None
    child.sendline(child.match[1])
    child.expect("is already installed")
    child.expect("only a demo")
    assert wait_for_exit(child) == 0
