"""Questions of the agent are answered by pressing buttons; menus offer the commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.inbound.commands import menu_commands
from support import discord_server
from support.discord_setup import discord_setup
from support.gateways import running_gateway
from support.slack_server import ANN, BOB, DM
from support.slack_setup import SlackSetup, slack_setup
from support.telegram_server import Fault, TelegramServer
from support.telegram_setup import TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.adapters import ServerSetup

RISKY = "[{calls: [{name: terminal, arguments: {command: rm -rf build}}]}, {say: Finished.}]"
CHOICES = ["Once", "This session", "Always", "No"]
EVE = {"id": 666, "is_bot": False, "first_name": "Eve"}


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


def config(platform: Platform = Platform.TELEGRAM, user: str = "7") -> GatewayConfig:
    extra = {"allowed_users": [user], "allow_admin_from": [user]}
    return GatewayConfig(platforms={platform: PlatformConfig(True, extra=extra)})


# Telegram


async def test_a_command_is_approved_by_a_button_which_then_goes(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    (tmp_path / "build").mkdir()
    answering(RISKY)
    server = setup.server
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await server.send_as_user("clean up")
        await async_wait_until(lambda: server.sent)
        card = server.sent[0]
        assert list(server.buttons(card)) == CHOICES
        await server.press(card, "Once", EVE)  # ignored: a person without access
        await server.press(card, "Once")
        await async_wait_until(lambda: len(server.sent) == 2)
        await async_wait_until(lambda: server.without_buttons)
    assert server.sent[1].text == "Finished."
    assert not (tmp_path / "build").exists()


async def test_the_button_of_an_earlier_question_does_not_answer_the_next_one(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    for name in ("build", "dist"):
        (tmp_path / name).mkdir()
    calls = [
        json.dumps({"calls": [{"name": "terminal", "arguments": {"command": f"rm -rf {name}"}}]})
        for name in ("build", "dist")
    ]
    answering(f"[{', '.join(calls)}, {{say: Finished.}}]")
    server = setup.server
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await server.send_as_user("clean up")
        await async_wait_until(lambda: server.sent)
        first = server.sent[0]
        await server.press(first, "No")
        await async_wait_until(lambda: len(server.sent) == 2)
        await server.press(first, "Once")
        await async_wait_until(lambda: len(server.sent) == 3)
        assert server.sent[2].text == "This question is no longer open."
        await server.press(server.sent[1], "No")
        await async_wait_until(lambda: server.sent[-1].text == "Finished.")
        await server.press(first, "Once")  # no turn runs any longer
        await async_wait_until(lambda: len(server.sent) == 5)
    assert server.sent[4].text == "This question is no longer open."
    assert [(tmp_path / name).exists() for name in ("build", "dist")] == [True, True]


async def test_a_choice_is_made_by_a_button(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    question = {"question": "Which one?", "choices": ["the red one", "the blue one, " + "x" * 80]}
    calls = json.dumps({"calls": [{"name": "clarify", "arguments": question}]})
    model = answering(f"[{calls}, {{say: Taken.}}]")
    server = setup.server
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await server.send_as_user("take one")
        await async_wait_until(lambda: server.sent)
        labels = list(server.buttons(server.sent[0]))
        assert labels[0] == "1. the red one"
        await server.press(server.sent[0], labels[1])
        await async_wait_until(lambda: len(server.sent) == 2)
    assert "the blue one" in json.dumps(model.requests[-1]["messages"][-1])


async def test_the_menu_of_telegram_has_the_commands_of_chats(setup: TelegramSetup) -> None:
    context = setup.context
    setup.context = lambda: context()._replace(commands=menu_commands())  # type: ignore[method-assign]
    async with setup.connected():
        assert {"new", "stop", "help", "remind", "whoami"} <= set(setup.server.commands)
        assert not {"save", "quit"} & set(setup.server.commands)


async def test_a_bot_without_a_menu_works(setup: TelegramSetup) -> None:
    context = setup.context
    setup.context = lambda: context()._replace(commands=menu_commands())  # type: ignore[method-assign]
    setup.server.plan("setMyCommands", Fault(400, "Bad Request: too many commands"))
    async with setup.connected():
        await setup.server.send_as_user("hello")
        await setup.inbox.wait_for(1)


# Slack


@pytest.fixture
async def slack(db: SessionDB, tmp_path: Path) -> AsyncIterator[SlackSetup]:
    async with slack_setup(db, tmp_path) as result:
        yield result


async def test_a_command_is_approved_by_a_button_of_slack(
    db: SessionDB, tmp_path: Path, slack: SlackSetup, answering: Any
) -> None:
    (tmp_path / "build").mkdir()
    answering(RISKY)
    server = slack.server
    async with running_gateway(
        db, tmp_path, config(Platform.SLACK, ANN), {"slack": slack.adapter()}
    ):
        await server.send_as_user(DM, "clean up")
        await async_wait_until(lambda: len(server.messages[DM]) == 2)
        card = server.messages[DM][1]
        assert list(server.buttons(card)) == CHOICES
        await server.press(DM, card, "Once", BOB)  # ignored: a person without access
        await server.press(DM, card, "Once")
        await async_wait_until(lambda: server.texts(DM)[-1] == "Finished.")
        await async_wait_until(lambda: card["blocks"] == [])
        await async_wait_until(lambda: not server.unacknowledged)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("name", "text", "reply"),
    [("/hermes", "whoami", '"Ann"'), ("/whoami", "", '"Ann"'), ("/hermes", "", "/new - ")],
)
async def test_slash_commands_of_slack_are_answered(
    db: SessionDB, tmp_path: Path, slack: SlackSetup, name: str, text: str, reply: str
) -> None:
    server = slack.server
    async with running_gateway(
        db, tmp_path, config(Platform.SLACK, ANN), {"slack": slack.adapter()}
    ):
        await server.command(DM, name, text)
        await async_wait_until(lambda: server.texts(DM))
        await async_wait_until(lambda: not server.unacknowledged)
    assert reply in server.texts(DM)[0]


# Discord


@pytest.fixture
async def discord(db: SessionDB, tmp_path: Path) -> AsyncIterator[ServerSetup]:
    async with discord_setup(db, tmp_path) as result:
        context = result.context
        result.context = lambda: context()._replace(commands=menu_commands())  # type: ignore[method-assign]
        yield result


def discord_config() -> GatewayConfig:
    return config(Platform.DISCORD, str(discord_server.ANN_ID))


async def test_a_command_is_approved_by_a_button_of_discord(
    db: SessionDB, tmp_path: Path, discord: ServerSetup, answering: Any
) -> None:
    (tmp_path / "build").mkdir()
    answering(RISKY)
    server, chat = discord.server, discord_server.DM
    async with running_gateway(db, tmp_path, discord_config(), {"discord": discord.adapter()}):
        await server.send_as_user(chat, "clean up")
        await async_wait_until(lambda: len(server.messages[chat]) == 2)
        card = server.messages[chat][1]
        assert list(server.buttons(card)) == CHOICES
        await server.press(card, "Once", discord_server.BOB)  # ignored: without access
        await async_wait_until(lambda: server.confirmed)
        card["components"] = [{"components": [{"label": "Once", "custom_id": once(db)}]}]
        await server.press(card, "Once")
        await async_wait_until(lambda: server.texts(chat)[-1] == "Finished.")
        await async_wait_until(lambda: card["components"] == [])
    assert not (tmp_path / "build").exists()


def once(db: SessionDB) -> str:
    """The data of the button in the outbox."""
    sql = "SELECT payload FROM hermes_outbox ORDER BY outbox_id"
    rows = db.engine.read(lambda reader: reader.rows(sql))
    payloads = [json.loads(row[0]) for row in rows]
    return next(dict(item["buttons"])["Once"] for item in payloads if item.get("buttons"))


async def test_application_commands_of_discord_are_registered_once_and_answered(
    db: SessionDB, tmp_path: Path, discord: ServerSetup
) -> None:
    server, chat = discord.server, discord_server.DM
    for _ in range(2):
        async with running_gateway(db, tmp_path, discord_config(), {"discord": discord.adapter()}):
            await async_wait_until(lambda: server.commands)
    assert {"new", "model", "whoami"} <= set(server.commands)
    assert sum(path.endswith("/commands") for _, path, _ in server.requests) == 1
    async with running_gateway(db, tmp_path, discord_config(), {"discord": discord.adapter()}):
        await server.command(chat, "whoami")
        await async_wait_until(lambda: server.texts(chat))
        await server.command(chat, "title", "A name")
        await async_wait_until(lambda: len(server.texts(chat)) == 2)
    assert '"Ann"' in server.texts(chat)[0]
    assert server.confirmed == [4, 4]
