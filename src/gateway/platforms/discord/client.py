"""A connection to Discord: the library's client, opened, ended and closed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

import discord
from aiohttp import ClientError
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from gateway.platforms.discord import results

if TYPE_CHECKING:
    from hermes_core.errors import PlatformError

log = logging.getLogger(__name__)

OPEN_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
IDENTIFY_SECONDS: Final = 5.0  # as often as Discord lets a bot begin anew
LONGEST_RATE_LIMIT: Final = 3.0  # seconds the library may wait by itself
TROUBLE: Final = (discord.DiscordException, ClientError, OSError, TimeoutError)


class Hears(Protocol):
    """What is told of what happens on Discord; nothing of it waits."""

    def begun(self) -> None:
        """A session has begun; what came before it has to be fetched."""

    def said(self, message: discord.Message) -> None:
        """Somebody wrote."""

    def changed(self, message: discord.Message) -> None:
        """Somebody changed what they wrote."""

    def appeared(self, guild: discord.Guild) -> None:
        """A server whose channels are known now."""


class Client(discord.Client):
    """The library's client, with as little as possible asked for and remembered."""

    hears: Hears  # known before anything is to be heard

    def __init__(self, identify_seconds: float = IDENTIFY_SECONDS) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = True
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        # The constructor takes no less than half a minute, for which a send would stand still.
        self.http.max_ratelimit_timeout = LONGEST_RATE_LIMIT
        self._identify_seconds = identify_seconds
        self.has_begun = asyncio.Event()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait before another session is begun."""
        if not initial:
            await asyncio.sleep(self._identify_seconds)

    def dispatch(self, event: str, /, *args: Any, **facts: Any) -> None:
        """Tell of something; a client that is closed tells nothing, though the library tries."""
        if not self.is_closed():
            super().dispatch(event, *args, **facts)

    async def on_connect(self) -> None:
        """A session began; one that is resumed is not announced here."""
        self.has_begun.set()
        self.hears.begun()

    async def on_message(self, message: discord.Message) -> None:
        """A message."""
        self.hears.said(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """A message that is another now."""
        self.hears.changed(payload.message)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """A server that came into view."""
        self.hears.appeared(guild)


class Session:
    """A client at work. The library resumes what can be resumed; any other end is an end."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._running: asyncio.Task[None] | None = None

    async def log_in(self, token: str, base_url: str) -> str:
        """Find out who we are; *base_url* stands in for Discord's own address."""
        if base_url:
            Route.BASE = base_url
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self.client.login(token)
                if base_url:
                    _, url, *_ = await self.client.http.get_bot_gateway()
                    DiscordWebSocket.DEFAULT_GATEWAY = URL(url)
        except (*TROUBLE, KeyError, TypeError) as error:  # the last two: it is not Discord
            raise results.trouble(error) from error
        return str(self.client.user.id) if self.client.user else ""

    async def open(self, hears: Hears) -> None:
        """Begin to listen; returns when Discord says that we do."""
        self.client.hears = hears
        self._running = asyncio.create_task(self.client.connect(reconnect=False))
        begun = asyncio.create_task(self.client.has_begun.wait())
        try:
            await asyncio.wait(
                [self._running, begun],
                timeout=OPEN_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            begun.cancel()
        if self._running.done():
            raise await self.ended()
        if not self.client.has_begun.is_set():
            raise results.trouble(TimeoutError("no session began"))

    async def ended(self) -> PlatformError:
        """Wait for the end: why it came."""
        if self._running is None:
            return results.trouble(ConnectionError("it was never opened"))
        await asyncio.wait([self._running])
        error = None if self._running.cancelled() else self._running.exception()
        if isinstance(error, Exception):  # whatever it is: the library falls over odd events
            return results.trouble(error)
        return results.trouble(ConnectionError("the connection was closed"))

    async def close(self) -> None:
        """Let go."""
        running, self._running = self._running, None
        if running is not None:
            if not self.client.is_closed():  # else it ends by itself, and closes what is open
                running.cancel()
            await asyncio.wait([running], timeout=CLOSE_SECONDS)
            error = running.exception() if running.done() and not running.cancelled() else None
            log.debug("Discord is let go of: %s", error)
        try:
            await asyncio.wait_for(self.client.close(), CLOSE_SECONDS)
        except TROUBLE as error:
            log.info("Discord was not let go of: %s", results.described(error))
            await self.client.http.close()
