"""Chat platforms that people write on while a gateway is killed: the same for every one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from support import discord_server, slack_server, telegram_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.synapse import Person, Synapse

CHATS = 3


class PlatformChats(Protocol):
    """People in direct chats with the bot."""

    platform: str
    is_idempotent: bool
    variables: dict[str, str]  # the gateway's environment
    options: dict[str, Any]  # what is written for the platform in config.yaml
    chats: list[str]

    async def say(self, chat: str, text: str) -> None:
        """Somebody writes."""

    async def answers(self, chat: str) -> list[str]:
        """What the bot said in a chat, in order."""

    def deliveries(self) -> int:
        """How often the gateway was told of something."""

    def forget(self) -> None:
        """The platform tells no more of what was not confirmed, where it does so at times."""


class TelegramChats(NamedTuple):
    """Chats with a bot of a Bot API."""

    server: telegram_server.TelegramServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "telegram"
    is_idempotent: bool = False

    async def say(self, chat: str, text: str) -> None:
        await self.server.say(text, int(chat))

    async def answers(self, chat: str) -> list[str]:
        return [item.text for item in self.server.sent if item.chat_id == int(chat)]

    def deliveries(self) -> int:
        return len(self.server.delivered)

    def forget(self) -> None:
        """It keeps everything for a day."""


class DiscordChats(NamedTuple):
    """Direct messages to a bot."""

    server: discord_server.DiscordServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "discord"
    is_idempotent: bool = True

    async def say(self, chat: str, text: str) -> None:
        await self.server.say(int(chat), text)

    async def answers(self, chat: str) -> list[str]:
        bot = discord_server.BOT["id"]
        message = self.server.messages[int(chat)]
        return [item["content"] for item in message if item["author"]["id"] == bot]

    def deliveries(self) -> int:
        return sum(len(session.events) for session in self.server.sessions.values() if session.wire)

    def forget(self) -> None:
        self.server.sessions.clear()


class SlackChats(NamedTuple):
    """Direct messages to an app."""

    server: slack_server.SlackServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "slack"
    is_idempotent: bool = False

    async def say(self, chat: str, text: str) -> None:
        await self.server.say(chat, text)

    async def answers(self, chat: str) -> list[str]:
        return [item["text"] for item in self.server.messages[chat] if item.get("bot_id")]

    def deliveries(self) -> int:
        return len(self.server.acknowledged)

    def forget(self) -> None:
        self.server.unacknowledged.clear()


class MatrixChats(NamedTuple):
    """Rooms of a person and a bot."""

    ann: Person
    bot: Person
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    said: list[str]
    platform: str = "matrix"
    is_idempotent: bool = True

    async def say(self, chat: str, text: str) -> None:
        await asyncio.to_thread(self.ann.say, chat, text)
        self.said.append(text)

    async def answers(self, chat: str) -> list[str]:
        return [
            str(item["content"]["body"])
            for item in await asyncio.to_thread(self.ann.seen, chat)
            if item["type"] == "m.room.message"
            and item["sender"] == self.bot.user_id
            and "m.new_content" not in item["content"]
        ]

    def deliveries(self) -> int:
        return len(self.said)

    def forget(self) -> None:
        """It keeps everything."""


@asynccontextmanager
async def on_telegram() -> AsyncIterator[PlatformChats]:
    async with telegram_server.TelegramServer() as server:
        chats = [str(11 + number) for number in range(CHATS)]
        variables = {"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN}
        yield TelegramChats(
            server, chats, variables, {"base_url": server.base_url, "poll_seconds": 2}
        )


@asynccontextmanager
async def on_discord() -> AsyncIterator[PlatformChats]:
    async with discord_server.DiscordServer() as server:
        numbers = range(101, 101 + CHATS)
        for number in numbers:
            server.add_direct(number)
        variables = {"DISCORD_BOT_TOKEN": discord_server.TOKEN}
        yield DiscordChats(server, [*map(str, numbers)], variables, {"base_url": server.base_url})


@asynccontextmanager
async def on_slack() -> AsyncIterator[PlatformChats]:
    async with slack_server.SlackServer() as server:
        chats = [f"D{number}" for number in range(11, 11 + CHATS)]
        for chat in chats:
            server.add_direct(chat)
        tokens = {"BOT": slack_server.BOT_TOKEN, "APP": slack_server.APP_TOKEN}
        variables = {f"SLACK_{name}_TOKEN": token for name, token in tokens.items()}
        yield SlackChats(server, chats, variables, {"base_url": server.base_url})


@asynccontextmanager
async def on_matrix(synapse: Synapse) -> AsyncIterator[PlatformChats]:
    bot, ann = synapse.person("bot", "Hermes"), synapse.person("ann", "Ann")
    rooms = [ann.room(bot.user_id) for _ in range(CHATS)]
    for room in rooms:
        bot.join(room)
    variables = {"MATRIX_HOMESERVER": synapse.url, "MATRIX_ACCESS_TOKEN": bot.token}
    yield MatrixChats(ann, bot, rooms, variables, {"sync_seconds": 5}, [])
