"""Direct chats on every chat platform, behind one interface for kill tests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from support import discord_server, slack_server, telegram_server
from support.mail_server import PASSWORD, compose
from support.matrix_client import ENCRYPTION, encrypted_user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.mail_server import MailServer
    from support.matrix_client import EncryptedUser
    from support.synapse import MatrixUser, Synapse

CHAT_COUNT = 3


class PlatformChats(Protocol):
    """Users in direct chats with the bot."""

    platform: str
    is_idempotent: bool
    variables: dict[str, str]  # the gateway's environment
    options: dict[str, Any]  # of the platform in config.yaml
    chats: list[str]

    async def send_as_user(self, chat: str, text: str) -> None:
        """Send a message from a user to the bot."""

    async def answers(self, chat: str) -> list[str]:
        """The bot's messages in a chat, in order."""

    def deliveries(self) -> int:
        """The number of events delivered to the gateway."""

    def drop_unconfirmed(self) -> None:
        """Drop the unconfirmed events, on platforms that may do so."""


class TelegramChats(NamedTuple):
    """Chats with a bot of a Bot API."""

    server: telegram_server.TelegramServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "telegram"
    is_idempotent: bool = False

    async def send_as_user(self, chat: str, text: str) -> None:
        await self.server.send_as_user(text, int(chat))

    async def answers(self, chat: str) -> list[str]:
        return [message.text for message in self.server.sent if message.chat_id == int(chat)]

    def deliveries(self) -> int:
        return len(self.server.delivered)

    def drop_unconfirmed(self) -> None:
        """Telegram stores updates for a day."""


class DiscordChats(NamedTuple):
    """Direct messages to a bot."""

    server: discord_server.DiscordServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "discord"
    is_idempotent: bool = True

    async def send_as_user(self, chat: str, text: str) -> None:
        await self.server.send_as_user(int(chat), text)

    async def answers(self, chat: str) -> list[str]:
        bot = discord_server.BOT["id"]
        messages = self.server.messages[int(chat)]
        return [message["content"] for message in messages if message["author"]["id"] == bot]

    def deliveries(self) -> int:
        return sum(len(session.events) for session in self.server.sessions.values() if session.wire)

    def drop_unconfirmed(self) -> None:
        self.server.sessions.clear()


class SlackChats(NamedTuple):
    """Direct messages to an app."""

    server: slack_server.SlackServer
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    platform: str = "slack"
    is_idempotent: bool = False

    async def send_as_user(self, chat: str, text: str) -> None:
        await self.server.send_as_user(chat, text)

    async def answers(self, chat: str) -> list[str]:
        return [message["text"] for message in self.server.messages[chat] if message.get("bot_id")]

    def deliveries(self) -> int:
        return len(self.server.acknowledged)

    def drop_unconfirmed(self) -> None:
        self.server.unacknowledged.clear()


class MatrixChats(NamedTuple):
    """Rooms of a user and a bot."""

    ann: MatrixUser
    bot: MatrixUser
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    sent_texts: list[str]
    platform: str = "matrix"
    is_idempotent: bool = True

    async def send_as_user(self, chat: str, text: str) -> None:
        await asyncio.to_thread(self.ann.send_text, chat, text)
        self.sent_texts.append(text)

    async def answers(self, chat: str) -> list[str]:
        return [
            str(event["content"]["body"])
            for event in await asyncio.to_thread(self.ann.events, chat)
            if event["type"] == "m.room.message"
            and event["sender"] == self.bot.user_id
            and "m.new_content" not in event["content"]
        ]

    def deliveries(self) -> int:
        return len(self.sent_texts)

    def drop_unconfirmed(self) -> None:
        """Matrix stores all events."""


class EncryptedMatrixChats(NamedTuple):
    """Encrypted rooms with the bot; every answer is decrypted."""

    app: EncryptedUser
    bot: MatrixUser
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    sent_texts: list[str]
    platform: str = "matrix"
    is_idempotent: bool = True

    async def send_as_user(self, chat: str, text: str) -> None:
        await self.app.send_text(chat, text)
        self.sent_texts.append(text)

    async def answers(self, chat: str) -> list[str]:
        await self.app.sync()
        assert not self.app.undecrypted
        return [
            str(event["content"]["body"])
            for event in self.app.events
            if (event["sender"], event["room_id"]) == (self.bot.user_id, chat)
            and event["type"] == "m.room.message"
            and "m.new_content" not in event["content"]
        ]

    def deliveries(self) -> int:
        return len(self.sent_texts)

    def drop_unconfirmed(self) -> None:
        """Matrix stores all events."""


class MailChats(NamedTuple):
    """Threads of users with a mailbox; a chat is an address and the ID of its first message."""

    server: MailServer
    address: str
    chats: list[str]
    variables: dict[str, str]
    options: dict[str, Any]
    sent_texts: list[str]
    platform: str = "email"
    is_idempotent: bool = False  # receivers may drop a second copy by its message ID

    async def send_as_user(self, chat: str, text: str) -> None:
        sender, _, root = chat.partition(":")
        is_first = not any(sent.startswith(text.partition("-")[0]) for sent in self.sent_texts)
        thread = {"Message_ID": root} if is_first else {"References": root}
        message = compose(sender, self.address, text, **thread)
        await asyncio.to_thread(self.server.send, message)
        self.sent_texts.append(text)

    async def answers(self, chat: str) -> list[str]:
        sender, _, root = chat.partition(":")
        return [
            mail.text
            for mail in self.server.smtp.received
            if mail.recipient == sender and root in str(mail.content["References"])
        ]

    def deliveries(self) -> int:
        return len(self.sent_texts)

    def drop_unconfirmed(self) -> None:
        """A mailbox keeps its messages."""


@asynccontextmanager
async def on_telegram() -> AsyncIterator[PlatformChats]:
    async with telegram_server.TelegramServer() as server:
        chats = [str(11 + number) for number in range(CHAT_COUNT)]
        variables = {"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN}
        yield TelegramChats(
            server, chats, variables, {"base_url": server.base_url, "poll_seconds": 2}
        )


@asynccontextmanager
async def on_discord() -> AsyncIterator[PlatformChats]:
    async with discord_server.DiscordServer() as server:
        numbers = range(101, 101 + CHAT_COUNT)
        for number in numbers:
            server.add_direct(number)
        variables = {"DISCORD_BOT_TOKEN": discord_server.TOKEN}
        yield DiscordChats(server, [*map(str, numbers)], variables, {"base_url": server.base_url})


@asynccontextmanager
async def on_slack() -> AsyncIterator[PlatformChats]:
    async with slack_server.SlackServer() as server:
        chats = [f"D{number}" for number in range(11, 11 + CHAT_COUNT)]
        for chat in chats:
            server.add_direct(chat)
        tokens = {"BOT": slack_server.BOT_TOKEN, "APP": slack_server.APP_TOKEN}
        variables = {f"SLACK_{name}_TOKEN": token for name, token in tokens.items()}
        yield SlackChats(server, chats, variables, {"base_url": server.base_url})


@asynccontextmanager
async def on_matrix(synapse: Synapse) -> AsyncIterator[PlatformChats]:
    bot, ann = synapse.register_user("bot", "Hermes"), synapse.register_user("ann", "Ann")
    rooms = [ann.create_room(bot.user_id) for _ in range(CHAT_COUNT)]
    for room in rooms:
        bot.join(room)
    variables = {"MATRIX_HOMESERVER": synapse.url, "MATRIX_ACCESS_TOKEN": bot.token}
    yield MatrixChats(ann, bot, rooms, variables, {"sync_seconds": 5}, [])


@asynccontextmanager
async def on_encrypted_matrix(synapse: Synapse, folder: Path) -> AsyncIterator[PlatformChats]:
    bot, ann = synapse.register_user("crypt-bot", "Hermes"), synapse.register_user("crypt-ann")
    async with encrypted_user(ann, folder) as app:
        rooms = [
            ann.create_room(bot.user_id, initial_state=[ENCRYPTION]) for _ in range(CHAT_COUNT)
        ]
        for room in rooms:
            bot.join(room)
        variables = {"MATRIX_HOMESERVER": synapse.url, "MATRIX_ACCESS_TOKEN": bot.token}
        yield EncryptedMatrixChats(app, bot, rooms, variables, {"sync_seconds": 5}, [])


@asynccontextmanager
async def on_email(server: MailServer) -> AsyncIterator[PlatformChats]:
    address = server.new_address()
    name = address.partition("@")[0]
    chats = [f"ann{number}@example.org:<{name}.{number}@mail.test>" for number in range(CHAT_COUNT)]
    variables = {"EMAIL_ADDRESS": address, "EMAIL_PASSWORD": PASSWORD}
    options = server.options(poll_seconds=5, messages_per_hour=0, thread_messages=0)
    yield MailChats(server, address, chats, variables, options, [])
