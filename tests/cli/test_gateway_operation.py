"""`hermes gateway restart`, `logs`, `trace`, `channels`, `add`, `install` and `hermes send`."""

from __future__ import annotations

import asyncio
import configparser
import json
import os
import plistlib
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway import status
from gateway.platforms.local import socket_path
from gateway.platforms.registry import BUILT_IN_PLATFORMS
from hermes_cli.commands.gateway import setup
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.chat import LocalChatClient
from support.model_servers import model_servers
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.package_installer import Library

ROOT = Path(__file__).parents[2]


@pytest.fixture
def running(hermes: Any) -> Iterator[Any]:
    """`hermes`, with a gateway that answers."""
    with model_servers() as start:
        server = start("[{say: Hello.}, {say: Again.}]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        assert hermes("gateway", "start").code == 0
        yield hermes
        hermes("gateway", "stop")


def send_and_wait(text: str, number: str, count: int = 1) -> list[str]:
    async def exchange() -> list[str]:
        async with LocalChatClient(socket_path()) as chat:
            await chat.send(text, number)
            return await chat.wait_for(count)

    return asyncio.run(exchange())


def test_a_message_is_followed_from_the_platform_to_its_reply(running: Any) -> None:
    assert send_and_wait("hi", "m-77") == ["Hello."]

    def trace() -> Any:
        (item,) = json.loads(running("gateway", "trace", "m-77", "--json").out)
        return item

    # That it was sent is stored with the next commit.
    wait_until(lambda: [reply["state"] for reply in trace()["replies"]] == ["sent"])
    item = trace()
    assert (item["text"], item["state"], item["attempts"]) == ("hi", "done", 1)
    assert [(reply["text"], reply["state"]) for reply in item["replies"]] == [("Hello.", "sent")]
    assert item["stored_as"] is not None
    result = running("gateway", "trace", str(item["inbox_id"])).out
    assert "Hello." in result
    assert item["session_id"] in result
    lines = running("gateway", "logs", "--message", str(item["inbox_id"]), "--json").out
    texts = [json.loads(line)["message"] for line in lines.splitlines()]
    assert texts == ["message received", "message answered", "reply sent"]
    assert "reply sent" in running("gateway", "logs", "-n", "5").out
    missing = running("gateway", "trace", "nothing")
    assert (missing.code, "Message nothing was not received" in missing.err) == (2, True)


def test_the_gateway_restarts(running: Any) -> None:
    before = status.read_runtime_status() or {}
    assert "Gateway restarted" in running("gateway", "restart").out
    after = status.read_runtime_status() or {}
    assert after["pid"] == before["pid"]
    assert after["start_time"] > before["start_time"]
    assert send_and_wait("hi", "m1") == ["Hello."]


def test_without_a_gateway_there_is_nothing_to_restart_or_read(hermes: Any) -> None:
    assert "gateway is not running" in hermes("gateway", "restart").err
    assert "No log yet" in hermes("gateway", "logs").err
    assert "No known chats" in hermes("gateway", "channels").out


def test_a_message_sent_by_a_script_is_stored_in_the_conversation(running: Any) -> None:
    send_and_wait("hi", "m1")
    (item,) = json.loads(running("gateway", "channels", "--json").out)
    assert item["address"] == "local:c1"
    result = running("send", "local:c1", "The backup is done.", "--no-wait", "--key", "k1")
    assert "Queued for local:c1" in result.out
    assert running("send", "c1", "The backup is done.", "--no-wait", "--key", "k1").code == 0
    texts = send_and_wait("and now?", "m2", 2)
    assert texts.count("The backup is done.") == 1
    with SessionDB(is_recovering=False) as db:
        contents = [str(row["content"]) for row in db.get_messages(item["session_id"])]
    assert contents.count("The backup is done.") == 1


def test_a_failed_send_is_explained(hermes: Any) -> None:
    with SessionDB() as db:
        db.create_session("s1", "cli")
    assert "unknown chat" in hermes("send", "nobody", "hi").err
    assert "unknown platform" in hermes("send", "pigeon:1", "hi").err
    assert "Nothing to send" in hermes("send", "telegram:1", "  ").err
    assert "is not a file" in hermes("send", "telegram:1", "hi", "--file", "/not a/such").err
    data = json.loads(hermes("send", "telegram:1", "hi", "--json").out)
    assert (data["state"], data["target"]) == ("waiting", "telegram:1")


def test_a_conversation_is_handed_over_from_the_command_line(
    hermes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionDB() as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "hello")
    refused = hermes("gateway", "handoff", "s1", "telegram")
    assert refused.code == 2
    assert "Telegram is not set up. Run `hermes gateway add telegram`." in refused.err
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "1:x")
    asked = hermes("gateway", "handoff", "s1", "telegram")
    assert "s1: Handed off to Telegram; the gateway will pick it up once it is running" in asked.out
    assert "already" in hermes("gateway", "handoff", "s1", "telegram").err


# Set-up


def test_the_systemd_unit_runs_and_stops_the_gateway(hermes: Any, hermes_home: Path) -> None:
    printed = hermes("gateway", "install", "--print").out
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(printed)
    service = unit["Service"]
    assert service["KillMode"] == "mixed"
    assert shlex.split(service["ExecStart"]) == [str(ROOT / "hermes"), "gateway", "run"]
    assert service["RestartPreventExitStatus"].split() == ["2", "78"]
    assert service["Environment"] == f"HERMES_HOME={hermes_home}"
    assert int(service["TimeoutStopSec"]) == 210
    written = hermes("gateway", "install")
    assert "systemctl --user enable --now hermes-gateway" in written.out
    path = setup.service("linux").path
    assert path.read_text().strip() == printed.strip()
    assert "Removed" in hermes("gateway", "uninstall").out
    assert not path.exists()
    assert "not installed" in hermes("gateway", "uninstall").out


def service_process(hermes: Any) -> subprocess.Popen[str]:
    """The gateway, started as systemd starts it."""
    printed = hermes("gateway", "install", "--print").out
    lines = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    name, value = lines["Environment"].split("=", 1)
    return subprocess.Popen(
        shlex.split(lines["ExecStart"]),
        env={"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], name: value},
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip


def test_a_service_is_started_and_restarted_by_the_launcher(hermes: Any, hermes_home: Path) -> None:
    with service_process(hermes) as process:
        try:
            wait_until(lambda: status.running_pid() == process.pid)
            wait_until(lambda: "running" in str(status.read_runtime_status()))
            assert hermes("gateway", "restart").code == 0
            assert status.running_pid() == process.pid
            command_line = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
            assert command_line[-3:-1] == ["gateway", "run"]  # not a module that may move
        finally:
            process.terminate()
        assert process.wait() == 0


def test_a_service_whose_settings_are_invalid_is_not_restarted(
    hermes: Any, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text("gateway: {http_port: none}")
    process = service_process(hermes)
    _, error = process.communicate()
    assert "http_port" in error
    assert str(process.returncode) in {"2", "78"}  # RestartPreventExitStatus


def test_a_service_file_of_an_older_release_is_reported(hermes: Any) -> None:
    hermes("gateway", "install")
    path = setup.service("linux").path
    new = path.read_text()
    old = new.replace(f"{ROOT}/hermes gateway run", "/opt/.venv/bin/python -P -m gateway.process")
    assert old != new
    path.write_text(old)
    checks = {each["name"]: each for each in json.loads(hermes("doctor", "--json").out)["checks"]}
    assert checks["gateway service"]["status"] == "warning"
    assert "hermes gateway install" in checks["gateway service"]["advice"]
    hermes("gateway", "install")
    checks = {each["name"]: each for each in json.loads(hermes("doctor", "--json").out)["checks"]}
    assert checks["gateway service"]["status"] == "ok"


def test_the_launchd_service_runs_and_stops_the_gateway(hermes_home: Path) -> None:
    data = plistlib.loads(setup.service("darwin").content.encode())
    assert data["ProgramArguments"] == [str(ROOT / "hermes"), "gateway", "run"]
    assert data["EnvironmentVariables"] == {"HERMES_HOME": str(hermes_home)}


@pytest.mark.parametrize(
    "name", [built_in_platform.name for built_in_platform in BUILT_IN_PLATFORMS]
)
def test_setup_lists_the_requirements_of_each_platform(hermes: Any, name: str) -> None:
    result = hermes("gateway", "add", name)
    assert result.code == 0
    assert "hermes gateway start" in result.out


def test_a_platform_that_is_not_there_is_named(hermes: Any) -> None:
    assert "Unknown platform pigeon" in hermes("gateway", "add", "pigeon").err


@pytest.mark.parametrize(
    "library",
    [platform.library for platform in BUILT_IN_PLATFORMS if platform.library is not None],
    ids=lambda library: library.name,
)
def test_every_library_is_pinned_and_no_registry_is_named(library: Library) -> None:
    text = library.lock.read_text()
    pins = [line for line in text.splitlines() if "==" in line and not line.startswith("#")]
    assert pins
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text
