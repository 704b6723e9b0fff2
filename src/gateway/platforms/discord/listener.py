"""What happens on Discord, channel by channel, with nothing left out.

What Discord has sent over its WebSocket it does not send again to a process that died, and
what was written while nobody listened it never sends. So each channel that was ever heard is
read over HTTP when a session begins, from the last message that was received to the newest,
before anything newer of that channel is handed over.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import discord
from aiohttp import ClientError
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from gateway.platforms.deduplication import RecentItems
from gateway.platforms.discord import results
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS, OrderedQueues
from gateway.platforms.reconnect import RECONNECT_BACKOFF
from hermes_core.errors import HermesError, PlatformDownError

if TYPE_CHECKING:
    from gateway.platforms.base import Receive
    from gateway.platforms.cursors import Cursors
    from gateway.platforms.discord.messages import DiscordMessageReader
    from gateway.platforms.ordered_queues import Job
    from hermes_core.backoff import Backoff
    from hermes_core.errors import PlatformError

log = logging.getLogger(__name__)

OPEN_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
IDENTIFY_SECONDS: Final = 5.0  # as often as Discord lets a bot begin anew
MAX_RATE_LIMIT_SECONDS: Final = 3.0  # seconds the library may wait by itself
REQUEST_ERRORS: Final = (discord.DiscordException, ClientError, OSError, TimeoutError)


class DiscordEventHandler(Protocol):
    """What is told of what happens on Discord; nothing of it waits."""

    def begun(self) -> None:
        """A session has begun; what came before it has to be fetched."""

    def said(self, message: discord.Message) -> None:
        """Somebody wrote."""

    def changed(self, message: discord.Message) -> None:
        """Somebody changed what they wrote."""

    def appeared(self, guild: discord.Guild) -> None:
        """A server whose channels are known now."""


class DiscordClient(discord.Client):
    """The library's client, with as little as possible asked for and remembered."""

    hears: DiscordEventHandler  # known before anything is to be heard

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
        self.http.max_ratelimit_timeout = MAX_RATE_LIMIT_SECONDS
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


class DiscordSession:
    """A client at work. The library resumes what can be resumed; any other end is an end."""

    def __init__(self, client: DiscordClient) -> None:
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
        except (*REQUEST_ERRORS, KeyError, TypeError) as error:  # the last two: it is not Discord
            raise results.platform_error(error) from error
        return str(self.client.user.id) if self.client.user else ""

    async def open(self, hears: DiscordEventHandler) -> None:
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
            raise results.platform_error(TimeoutError("no session was opened"))

    async def ended(self) -> PlatformError:
        """Wait for the end: why it came."""
        if self._running is None:
            return results.platform_error(ConnectionError("the connection was never opened"))
        await asyncio.wait([self._running])
        error = None if self._running.cancelled() else self._running.exception()
        if isinstance(error, Exception):  # whatever it is: the library falls over odd events
            return results.platform_error(error)
        return results.platform_error(ConnectionError("the connection was closed"))

    async def close(self) -> None:
        """Let go."""
        running, self._running = self._running, None
        if running is not None:
            if not self.client.is_closed():  # else it ends by itself, and closes what is open
                running.cancel()
            await asyncio.wait([running], timeout=CLOSE_SECONDS)
            error = running.exception() if running.done() and not running.cancelled() else None
            log.debug("Discord connection closed: %s", error)
        try:
            await asyncio.wait_for(self.client.close(), CLOSE_SECONDS)
        except REQUEST_ERRORS as error:
            log.info(
                "Discord connection failed to close cleanly: %s", results.describe_error(error)
            )
            await self.client.http.close()


MAX_CONCURRENT_READS: Final = 4  # channels that are read at the same time
SNOWFLAKES_PER_HOUR: Final = 3_600_000 << 22  # in ids
# What the library raises over a message that is not as it expects: what is behind it is left.
LIBRARY_ERRORS: Final = (AttributeError, KeyError, TypeError, ValueError)


def id_of_now() -> int:
    """The id that a message would have now."""
    return discord.utils.time_snowflake(datetime.now(UTC))


class DiscordListener:
    """Hands messages over, in the order of their channel."""

    def __init__(
        self,
        reader: DiscordMessageReader,
        cursors: Cursors,
        receive: Receive,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self._reader = reader
        self._cursors = cursors
        self._receive = receive
        self._queues = OrderedQueues("Discord", backoff, max_queued)
        self._client: DiscordClient | None = None
        self._filled: set[int] = set()  # channels that were read in this session
        self._handed = RecentItems()
        self._few = asyncio.Semaphore(MAX_CONCURRENT_READS)

    def use(self, client: DiscordClient) -> None:
        """Listen through another client."""
        self._client = client
        self._reader.use(client)

    async def drop(self) -> None:
        """Forget what was not handed over: the next session reads it again."""
        await self._queues.close()

    # What a client tells

    def begun(self) -> None:
        """Everything that is known has to be looked at."""
        self._filled = set()
        for channel in self._cursors.channels:
            self._fill_later(int(channel))

    def appeared(self, guild: discord.Guild) -> None:
        """Channels that were never heard may have been written in while nobody listened."""
        start = max(self._cursors.start, _joined_id(guild))
        written_in: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
        for channel in written_in:
            is_new = self._cursors.last(str(channel.id)) is None
            if is_new and (channel.last_message_id or 0) > start:
                self._fill_later(channel.id)

    def said(self, message: discord.Message) -> None:
        """A message, behind those that came before it."""
        self._later(message.channel.id, functools.partial(self._take, message))

    def changed(self, message: discord.Message) -> None:
        """An edit; a preview that was added to a link is none."""
        if message.edited_at is not None:
            self._later(message.channel.id, functools.partial(self._take_edit, message))

    def _fill_later(self, channel: int) -> None:
        self._later(channel, functools.partial(self._fill, channel))

    def _later(self, channel: int, job: Job) -> None:
        catch_up = functools.partial(self._guarded, functools.partial(self._fill_anew, channel))
        self._queues.add(str(channel), functools.partial(self._guarded, job), catch_up)

    async def _guarded(self, job: Job) -> None:
        """A client that is closed raises anything: that says nothing about the message."""
        try:
            await job()
        except RuntimeError as error:
            if self._client is None or self._client.is_closed():
                raise PlatformDownError("the connection has ended") from error
            raise

    # One line

    async def _take(self, message: discord.Message) -> None:
        channel = message.channel.id
        await self._fill(channel)
        await self._hand_over(message)
        if not self._queues.is_waiting(str(channel)):
            await self._cursors.save(str(channel))

    async def _take_edit(self, message: discord.Message) -> None:
        event = await self._reader.read(message, is_edit=True)
        if event is not None:
            await self._receive(event)

    async def _hand_over(self, message: discord.Message) -> None:
        if message.id in self._handed:
            return
        event = await self._reader.read(message)
        if event is not None:
            await self._receive(event)
        await self._cursors.reached(str(message.channel.id), message.id)
        self._handed.add(message.id)

    async def _fill_anew(self, channel: int) -> None:
        """Hand over what there was no room for while messages could not be kept."""
        self._filled.discard(channel)
        await self._fill(channel)

    async def _fill(self, channel: int) -> None:
        """Hand over what was missed in a channel, once in a session."""
        if channel in self._filled:
            return
        filled = self._filled
        try:
            async with self._few:
                await self._read_on(channel)
        except discord.NotFound:
            log.info("channel %s no longer exists", channel)
            await self._cursors.forget(str(channel))
        except discord.Forbidden as error:
            log.warning("channel %s history is unreadable: %s", channel, error)
        except HermesError:
            raise
        except LIBRARY_ERRORS:
            log.exception("channel %s contains an unreadable message", channel)
        except discord.RateLimited as error:
            await asyncio.sleep(error.retry_after)
            raise PlatformDownError(results.describe_error(error)) from error
        except discord.DiscordException as error:
            raise PlatformDownError(results.describe_error(error)) from error
        filled.add(channel)

    async def _read_on(self, channel: int) -> None:
        if self._client is None or self._client.is_closed():
            raise PlatformDownError("not connected")
        last = self._cursors.last(str(channel))
        place = await self._reader.place(channel)
        if last is None:
            last = max(self._cursors.start, _joined_id(place.guild) if place.guild else 0)
            last = await self._cursors.open(str(channel), last)
        if place.channel is None:
            return
        after = discord.Object(last)
        async for message in place.channel.history(limit=None, after=after, oldest_first=True):
            await self._hand_over(message)
        await self._cursors.save(str(channel))


def _joined_id(guild: discord.Guild) -> int:
    """Since when we are there, as an id."""
    me: Any = guild.me  # None where Discord did not say
    moment = me.joined_at if me else None
    return discord.utils.time_snowflake(moment) if moment else 0
