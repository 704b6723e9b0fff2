"""Platforms of plugins: the example of the guide, and what they share with built-in ones."""

from __future__ import annotations

import getpass
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from gateway import status
from gateway.process.config_loader import config_of_home
from gateway.process.http_server import HttpServer
from gateway.process.runner import create_adapters
from gateway.routing.sources import SessionEntry, SessionSource
from hermes_conversation.command_environment import environment_without_secrets
from support.gateway_process import GatewayProcess
from support.model_servers import model_servers
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB
    from support.command_line import Hermes

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/how-to/write-a-platform.md"
CODE_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_example_of_the_guide_works_and_a_broken_one_affects_no_other(
    hermes_home: Path, tmp_path: Path, *, is_broken: bool
) -> None:
    code = CODE_BLOCK.findall(GUIDE.read_text())[0]
    make_plugin(hermes_home, "folders", f"raise_here = 1 / {int(not is_broken)}\n{code}")
    folder = tmp_path / "questions"
    folder.mkdir()
    gateway = GatewayProcess()
    with model_servers() as start:
        server = start("[{say: Forty-two.}]")
        config = {
            "plugins": {"enabled": ["folders"]},
            "llm": {"api": "openai", "base_url": server.base_url, "model": "scripted"},
            "platforms": {
                "folder": {
                    "enabled": True,
                    "folder": str(folder),
                    "allowed_users": [getpass.getuser()],
                }
            },
        }
        (hermes_home / "config.yaml").write_text(json.dumps(config))
        (folder / "q1.question").write_text("What is six times seven?")
        gateway.start()
        try:
            wait_until(gateway.is_up, "the gateway")
            if is_broken:
                platforms = (status.read_runtime_status() or {})["platforms"]
                states = {name: platform["state"] for name, platform in platforms.items()}
                assert states == {"folder": "refused", "local": "connected"}
                return
            wait_until((folder / "q1.answer").exists, "the answer")
            wait_until(lambda: bool((folder / "q1.answer").read_text()), "all of it")
            assert (folder / "q1.answer").read_text() == "Forty-two."
            assert (folder / "q1.taken").exists()
        finally:
            gateway.stop()


OWN_TASK_CODE = """
import asyncio
from pathlib import Path

from gateway.platforms.base import Abilities, MessageEvent, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource


class FolderAdapter:
    abilities = Abilities(idempotent=True)
    account = "folder"

    def __init__(self, context):
        self._folder = Path(context.config.extra["folder"])

    async def connect(self, receive):
        self._task = asyncio.create_task(self._poll(receive))

    async def disconnect(self):
        self._task.cancel()

    async def _poll(self, receive):
        while True:
            for path in sorted(self._folder.glob("*.question")):
                source = SessionSource(Platform("folder"), path.stem, user_id=path.owner())
                await receive(MessageEvent(path.read_text(), source=source, message_id=path.stem))
                path.rename(path.with_suffix(".taken"))
            await asyncio.sleep(0.2)

    async def send(self, outgoing):
        (self._folder / f"{outgoing.chat_id}.answer").write_text(outgoing.text)
        return SendResult(True, message_id=outgoing.key)


def register(ctx):
    ctx.register_platform("folder", FolderAdapter, label="a folder")
"""


@contextmanager
def folder_gateway(home: Path, folder: Path, code: str) -> Iterator[GatewayProcess]:
    """A gateway with a platform that answers files in a folder."""
    make_plugin(home, "folders", code)
    folder.mkdir()
    gateway = GatewayProcess()
    with model_servers() as start:
        server = start("[{say: Hello.}, {say: Hello.}]")
        options = {"enabled": True, "folder": str(folder), "allowed_users": [getpass.getuser()]}
        config = {
            "plugins": {"enabled": ["folders"]},
            "llm": {"api": "openai", "base_url": server.base_url, "model": "scripted"},
            "platforms": {"folder": options},
        }
        (home / "config.yaml").write_text(json.dumps(config))
        gateway.start()
        try:
            wait_until(gateway.is_up, "the gateway")
            yield gateway
        finally:
            gateway.stop()


def ask(folder: Path, name: str, content: bytes) -> None:
    """Add a question to a folder, complete at once."""
    (folder / f"{name}.new").write_bytes(content)
    (folder / f"{name}.new").rename(folder / f"{name}.question")


def test_the_example_of_the_guide_sets_bad_input_aside_and_listens_on(
    hermes_home: Path, tmp_path: Path, hermes: Hermes
) -> None:
    folder = tmp_path / "questions"
    with folder_gateway(hermes_home, folder, CODE_BLOCK.findall(GUIDE.read_text())[0]):
        ask(folder, "q1", b"not UTF-8: \xff")
        ask(folder, "q2", b"hello")
        wait_until((folder / "q2.answer").exists, "the answer")
        quarantine = hermes("gateway", "quarantine").out
        assert "UnicodeDecodeError" in quarantine


def test_the_task_of_an_adapter_that_dies_is_reported_and_its_listener_restarted(
    hermes_home: Path, tmp_path: Path, hermes: Hermes
) -> None:
    folder = tmp_path / "questions"
    with folder_gateway(hermes_home, folder, OWN_TASK_CODE):
        ask(folder, "q1", b"hello")
        wait_until((folder / "q1.answer").exists, "the answer")
        ask(folder, "q2", b"not UTF-8: \xff")
        wait_until(
            lambda: "UnicodeDecodeError" in hermes("gateway", "status").out, "the reason in status"
        )
        (folder / "q2.question").unlink()
        ask(folder, "q3", b"hello again")
        wait_until((folder / "q3.answer").exists, "the next answer")


def test_the_guide_quotes_the_plugin_as_it_is() -> None:
    quotes = [block.split("\n", 1) for block in CODE_BLOCK.findall(GUIDE.read_text())[1:]]
    assert len(quotes) >= 7
    for first_line, code in quotes:
        path = ROOT / first_line.removeprefix("# ")
        assert code in path.read_text(), f"{path.name} has changed"


ECHO_PLUGIN = """
import os

from gateway.platforms.base import Abilities, MessageEvent, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource


class EchoAdapter:
    abilities = Abilities()
    account = "echo"

    def __init__(self, context):
        if context.config.extra.get("is_wrong"):
            from hermes_core.errors import PlatformRefusedError
            raise PlatformRefusedError("the settings of echo are wrong")
        self.commands = context.commands

    async def connect(self, receive):
        pass

    async def disconnect(self):
        pass

    async def send(self, outgoing):
        return SendResult(True)


def register(ctx):
    ctx.register_platform("echo", EchoAdapter, "Echo", requires_env=("ECHO_TOKEN",))
"""
PLATFORM_MANIFEST = "version: '1'\nkind: platform"


def configure(home: Path, *, is_enabled: bool = True, **echo: Any) -> None:
    """The plugin, and a configuration with its platform."""
    if not (home / "plugins" / "echo").exists():
        make_plugin(home, "echo", ECHO_PLUGIN, PLATFORM_MANIFEST)
    config = {
        "plugins": {"enabled": ["echo"] if is_enabled else []},
        "platforms": {"echo": {"enabled": True, **echo}},
    }
    (home / "config.yaml").write_text(json.dumps(config))


def test_the_helpers_of_platforms_need_no_library() -> None:
    code = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "import gateway.platforms.ordered_queues, gateway.platforms.quarantine\n"
        "import gateway.platforms.problems, gateway.platforms.cursors\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_messages_and_jobs_can_be_sent_to_a_platform_of_a_plugin(
    hermes: Hermes, hermes_home: Path
) -> None:
    configure(hermes_home, home_channel="ann")
    assert hermes("cron", "add", "tomorrow 9:00", "x", "--reminder", "--to", "echo:me").code == 0
    for target, address in (("echo", "echo:ann"), ("echo:bob", "echo:bob")):
        result = hermes("send", target, "hello")
        assert (result.code, result.err) == (0, "")
        assert f"Queued for {address}" in result.out


def test_gateway_add_prints_the_steps_of_a_plugin(hermes: Hermes, hermes_home: Path) -> None:
    configure(hermes_home, is_enabled=False)
    result = hermes("gateway", "add", "echo")
    assert result.code == 2
    assert "The plugin echo is not enabled. Run `hermes plugins enable echo`." in result.err
    configure(hermes_home)
    assert "ECHO_TOKEN=" in hermes("gateway", "add", "echo").out
    (hermes_home / "plugins" / "echo" / "__init__.py").write_text("raise ValueError('broken')")
    assert "failed to load: ValueError: broken" in hermes("gateway", "add", "echo").err
    assert "Unknown platform mail" in hermes("gateway", "add", "mail").err


def test_plugins_info_lists_platforms(hermes: Hermes, hermes_home: Path) -> None:
    configure(hermes_home)
    assert json.loads(hermes("plugins", "info", "echo", "--json").out)["platforms"] == ["echo"]


def test_doctor_reports_a_platform_that_cannot_start(hermes: Hermes, hermes_home: Path) -> None:
    def gateway_checks(**variables: str) -> list[str]:
        checks = json.loads(hermes("doctor", "--json", **variables).out)["checks"]
        return [check["detail"] for check in checks if check["name"] == "gateway"]

    configure(hermes_home)
    assert gateway_checks() == [
        "not running; echo",
        "echo cannot start: Echo: set ECHO_TOKEN in the environment or in .env.",
    ]
    assert gateway_checks(ECHO_TOKEN="t") == ["not running; echo"]
    configure(hermes_home, is_enabled=False)
    assert gateway_checks() == [
        "not configured: no chat platform",
        "echo cannot start: The plugin echo is not enabled. Run `hermes plugins enable echo`.",
    ]


def test_a_refused_platform_is_reported_by_status_and_later_by_doctor(
    hermes: Hermes, hermes_home: Path
) -> None:
    configure(hermes_home, is_wrong=True)
    gateway = GatewayProcess()
    gateway.start(ECHO_TOKEN="t")
    try:
        wait_until(gateway.is_up, "the gateway")
        assert "echo  refused: the settings of echo are wrong" in hermes("gateway", "status").out
        assert "echo is refused: the settings of echo are wrong" in hermes("doctor").out
    finally:
        gateway.stop()
    (hermes_home / ".env").write_text("ECHO_TOKEN=t\n")
    assert "echo cannot start: the settings of echo are wrong" in hermes("doctor").out


def test_a_configured_platform_without_its_plugin_is_refused(
    db: SessionDB, hermes_home: Path
) -> None:
    configure(hermes_home, is_enabled=False)
    created = create_adapters(db, config_of_home(), HttpServer("127.0.0.1", 0))
    assert "hermes plugins enable echo" in created.refused["echo"]


def test_an_adapter_of_a_plugin_gets_the_menu_of_commands(
    db: SessionDB, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(hermes_home)
    monkeypatch.setenv("ECHO_TOKEN", "t")
    created = create_adapters(db, config_of_home(), HttpServer("127.0.0.1", 0))
    adapter: Any = created.adapters["echo"]
    assert {"new", "remind", "whoami"} <= {command.name for command in adapter.commands}


def test_the_commands_of_the_agent_do_not_get_the_secrets_of_a_platform(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(hermes_home)
    monkeypatch.setenv("ECHO_TOKEN", "t")
    assert "ECHO_TOKEN" not in environment_without_secrets()


def test_variables_that_a_plugin_requires_may_be_in_the_env_file(
    hermes: Hermes, hermes_home: Path
) -> None:
    make_plugin(hermes_home, "keyed", "def register(ctx): pass", "requires_env: [KEYED_KEY]")
    (hermes_home / "config.yaml").write_text("plugins: {enabled: [keyed]}\n")
    (hermes_home / ".env").write_text("KEYED_KEY=k\n")
    assert json.loads(hermes("plugins", "info", "keyed", "--json").out)["state"] == "loaded"


def test_a_stored_message_can_be_read_while_its_plugin_is_disabled() -> None:
    source = SessionSource.from_dict({"platform": "retired", "chat_id": "c1", "user_id": "u1"})
    assert (source.platform.value, source.chat_id) == ("retired", "c1")
    now = datetime.now(UTC).isoformat()
    route: Any = {
        "session_key": "agent:main:retired:dm:c1",
        "session_id": "s1",
        "created_at": now,
        "updated_at": now,
        "platform": "retired",
        "origin": source.to_dict(),
    }
    stored = SessionEntry.from_dict(route).to_dict()
    assert (stored["platform"], stored["origin"]) == ("retired", source.to_dict())
    with pytest.raises(ValueError, match="not a valid Platform"):
        SessionSource.from_dict({"platform": "../x", "chat_id": "c1"})
