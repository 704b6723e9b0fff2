"""Slash commands of plugins in every front end."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gateway.platforms.base import Abilities, SendResult
from hermes_agent.providers.scripted import ModelScript
from hermes_conversation import slash_commands
from hermes_conversation.plugin_commands import provided_commands
from hermes_conversation.slash_commands import Surface
from hermes_core.errors import PluginError, UsageError
from hermes_core.roles import Role
from support.gateways import local_message, outbox_texts, running_gateway
from support.model_servers import configured_models, model_argument
from support.plain_terminal import quit_chat, start_chat
from support.plugin_folders import enable_plugins, make_plugin
from support.scripted_server import ScriptServer
from support.waiting import async_wait_until
from support.wire import RpcClient

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.platforms.base import OutgoingMessage, Receive
    from hermes_state import SessionDB
    from support.command_line import Hermes

DICE = """
import os, pathlib, time
async def later(text):
    return f"later {text}"
def note(text):
    path = pathlib.Path(os.environ["HERMES_HOME"]) / "noted"
    path.write_text(path.read_text() + "x" if path.exists() else "x")
def register(ctx):
    ctx.register_command("roll", lambda text: f"rolled {text or 6}", "roll dice", "[sides]")
    ctx.register_command("/Later", later)
    ctx.register_command("note", note)
    ctx.register_command("fail", lambda text: 1 / 0)
    ctx.register_command("leave", lambda text: exit(3))
    ctx.register_command("hang", lambda text: time.sleep(600))
    ctx.register_command("new", lambda text: "never reached")
    ctx.register_command("not a name", lambda text: "never reached")
"""


@pytest.fixture
def dice(hermes_home: Path) -> Path:
    return enable_plugins(hermes_home, dice=DICE)


def run(line: str) -> str:
    name, _, words = line[1:].partition(" ")
    return slash_commands.find(name).run(None, words).text  # type: ignore[arg-type]


@pytest.mark.usefixtures("dice")
def test_a_command_is_found_listed_and_called() -> None:
    assert run("/roll 20") == "rolled 20"
    assert run("/later on") == "later on"
    assert run("/note") == ""
    listed = "\n".join(
        f"/{command.name} {command.hint}  {command.help}"
        for command in slash_commands.listed_commands(Surface.TERMINAL)
    )
    assert "/roll [sides]" in listed
    assert "roll dice" in listed
    assert "not a name" not in listed


@pytest.mark.usefixtures("dice")
def test_a_built_in_command_is_not_replaced() -> None:
    assert slash_commands.find("new").provided is None
    names = [item.name for item in slash_commands.listed_commands(Surface.TERMINAL)]
    assert names.count("new") == 1


@pytest.mark.usefixtures("dice")
def test_the_failure_of_a_command_is_an_error_with_its_plugin() -> None:
    with pytest.raises(PluginError, match=r"/fail of the plugin dice failed: ZeroDivisionError"):
        run("/fail")
    with pytest.raises(PluginError, match=r"sys\.exit"):
        run("/leave")
    hanging = provided_commands(())["hang"]
    with pytest.raises(PluginError, match=r"did not return within 0\.1 s"):
        hanging.run("", seconds=0.1)


@pytest.mark.usefixtures("dice")
def test_only_the_owner_may_use_them() -> None:
    roll = slash_commands.find("roll")
    slash_commands.require_right(roll, Role.OWNER, "")
    for role in (Role.MEMBER, Role.GUEST):
        with pytest.raises(UsageError):
            slash_commands.require_right(roll, role, "")


@pytest.mark.usefixtures("hermes_home")
def test_a_command_of_a_disabled_plugin_is_unknown() -> None:
    with pytest.raises(UsageError, match="Unknown command: /roll"):
        slash_commands.find("roll")


@pytest.mark.usefixtures("dice")
def test_the_chat_in_a_terminal_calls_it() -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server:
        child = start_chat(server)
        child.sendline("/roll 12")
        child.expect("rolled 12")
        quit_chat(child)


@pytest.mark.usefixtures("dice")
def test_the_terminal_ui_and_the_page_call_it_through_the_daemon() -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server:
        client = RpcClient()
        created = client.call("session.create", model=model_argument(server))
        listed = client.call("commands.catalog")["commands"]
        outcome = client.call(
            "command.dispatch", session_id=created["session_id"], name="/roll", arg="8"
        )
        completed = client.call("complete.slash", text="/ro")
        client.close()
    assert {"/roll", "/later"} <= {command["name"] for command in listed}
    assert outcome["output"] == "rolled 8"
    assert completed["items"] == ["/roll"]


async def test_a_chat_app_calls_it_once(
    db: SessionDB, hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with configured_models(plugins__enabled="dice") as choose:
        make_plugin(hermes_home, "dice", DICE)
        choose("[{say: Hello.}]")
        async with running_gateway(db, tmp_path) as service:
            await service.receiver.receive("local", local_message("/roll 3", "m1"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 1)
            await service.receiver.receive("local", local_message("!later now", "m2"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 2)
            await service.receiver.receive("local", local_message("/help", "m3"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 3)
            monkeypatch.setattr(db.chats, "mark", lambda name: False)  # as after a crash
            await service.receiver.receive("local", local_message("/note", "m4"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 4)
    texts = outbox_texts(db)
    assert texts[:2] == ["rolled 3", "later now"]
    assert "/roll [sides] - roll dice" in texts[2]
    assert "may or may not have taken effect" in texts[3]
    assert not (hermes_home / "noted").exists()


FILTER = """
def check(event, gateway, session_store, **kwargs):
    assert gateway.adapters and session_store.list_sessions() is not None
    if "spam" in event.text:
        return {"action": "skip", "reason": "spam"}
    if "typo" in event.text:
        return {"action": "rewrite", "text": event.text.replace("typo", "word")}
    if "both" in event.text:
        return {"action": "allow"}
def second(event, **kwargs):
    return {"action": "rewrite", "text": "second"} if "both" in event.text else {"other": 1}
def note_sender(sender_id, **kwargs):
    return f"sender: {sender_id}"
def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", check)
    ctx.register_hook("pre_gateway_dispatch", second)
    ctx.register_hook("pre_llm_call", note_sender)
"""


class CapturingAdapter:
    """An adapter whose messages the test receives."""

    abilities: ClassVar = Abilities()
    account = "local"
    receive: Receive

    async def connect(self, receive: Receive) -> None:
        self.receive = receive

    async def disconnect(self) -> None:
        pass

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        del outgoing
        return SendResult(success=True)


async def test_a_plugin_drops_or_rewrites_chat_messages_before_access_control(
    db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    with configured_models(plugins__enabled="filter") as choose:
        make_plugin(hermes_home, "filter", FILTER)
        server = choose("[{say: One.}, {say: Two.}]")
        adapter = CapturingAdapter()
        async with running_gateway(db, tmp_path, adapters={"local": adapter}) as service:
            await async_wait_until(lambda: service.connections.is_connected("local"))
            receive = adapter.receive
            await receive(local_message("some spam", "m1"))
            await receive(local_message("a typo", "m2", user="u7"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 1)
            await receive(local_message("both", "m3", user="u8"))
            await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    prompts = [_prompt(request) for request in server.requests]
    assert ["a word" in prompts[0], "both" in prompts[1]] == [True, True]
    assert ["sender: u7" in prompts[0], "sender: u8" in prompts[1]] == [True, True]
    assert "spam" not in json.dumps(server.requests)


GUARD = """
import os, pathlib
def check(event, **kwargs):
    if not (pathlib.Path(os.environ["HERMES_HOME"]) / "policy").exists():
        raise RuntimeError("policy server down")
    return {"action": "rewrite", "text": event.text + ", please"}
def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", check)
"""


async def test_a_message_on_which_a_plugin_fails_is_kept_and_its_sender_gets_a_notice(
    db: SessionDB, hermes_home: Path, tmp_path: Path, hermes: Hermes
) -> None:
    with configured_models(plugins__enabled="guard") as choose:
        make_plugin(hermes_home, "guard", GUARD)
        server = choose("[{say: One.}]")
        adapter = CapturingAdapter()
        async with running_gateway(db, tmp_path, adapters={"local": adapter}) as service:
            await async_wait_until(lambda: service.connections.is_connected("local"))
            await adapter.receive(local_message("tell me", "m1"))
            await async_wait_until(lambda: db.inbox.count_failed() == 1)
            (notice,) = outbox_texts(db)
            assert "the plugin guard, which must decide this, failed" in notice
            assert "RuntimeError: policy server down" in notice
            assert server.requests == []
            (hermes_home / "policy").touch()
            (kept,) = db.inbox.failed()
            retried = await asyncio.to_thread(
                hermes, "gateway", "quarantine", str(kept.inbox_id), "--retry"
            )
            assert retried.code == 0
            await async_wait_until(lambda: outbox_texts(db)[1:] == ["One."])
    assert "tell me, please" in _prompt(server.requests[0])


def _prompt(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])
