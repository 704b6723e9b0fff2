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
from typing import TYPE_CHECKING, Any, Final

import discord

from gateway.platforms.backoff import PAUSES
from gateway.platforms.discord import results
from gateway.platforms.ordered_queues import MOST_WAITING, Lines
from gateway.platforms.recent import Recent
from hermes_core.errors import HermesError, PlatformDownError

if TYPE_CHECKING:
    from gateway.platforms.base import Receive
    from gateway.platforms.cursors import Cursors
    from gateway.platforms.discord.client import Client
    from gateway.platforms.discord.messages import Reader
    from gateway.platforms.ordered_queues import Job

log = logging.getLogger(__name__)

AT_ONCE: Final = 4  # channels that are read at the same time
HOUR: Final = 3_600_000 << 22  # in ids
# What the library raises over a message that is not as it expects: what is behind it is left.
ODD: Final = (AttributeError, KeyError, TypeError, ValueError)


def id_of_now() -> int:
    """The id that a message would have now."""
    return discord.utils.time_snowflake(datetime.now(UTC))


class Listener:
    """Hands messages over, in the order of their channel."""

    def __init__(
        self,
        reader: Reader,
        cursors: Cursors,
        receive: Receive,
        pauses: tuple[float, ...] = PAUSES,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._reader = reader
        self._cursors = cursors
        self._receive = receive
        self._lines = Lines("Discord", pauses, most_waiting)
        self._client: Client | None = None
        self._filled: set[int] = set()  # channels that were read in this session
        self._handed = Recent()
        self._few = asyncio.Semaphore(AT_ONCE)

    def use(self, client: Client) -> None:
        """Listen through another client."""
        self._client = client
        self._reader.use(client)

    async def drop(self) -> None:
        """Forget what was not handed over: the next session reads it again."""
        await self._lines.close()

    # What a client tells

    def begun(self) -> None:
        """Everything that is known has to be looked at."""
        self._filled = set()
        for channel in self._cursors.channels:
            self._fill_later(int(channel))

    def appeared(self, guild: discord.Guild) -> None:
        """Channels that were never heard may have been written in while nobody listened."""
        start = max(self._cursors.beginning, _joined(guild))
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
        self._lines.add(str(channel), functools.partial(self._guarded, job), catch_up)

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
        if not self._lines.is_waiting(str(channel)):
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
            log.info("the channel %s is gone", channel)
            await self._cursors.forget(str(channel))
        except discord.Forbidden as error:
            log.warning("what was missed in the channel %s cannot be read: %s", channel, error)
        except HermesError:
            raise
        except ODD:
            log.exception("the channel %s has a message that cannot be read", channel)
        except discord.RateLimited as error:
            await asyncio.sleep(error.retry_after)
            raise PlatformDownError(results.described(error)) from error
        except discord.DiscordException as error:
            raise PlatformDownError(results.described(error)) from error
        filled.add(channel)

    async def _read_on(self, channel: int) -> None:
        if self._client is None or self._client.is_closed():
            raise PlatformDownError("there is no connection")
        last = self._cursors.last(str(channel))
        place = await self._reader.place(channel)
        if last is None:
            last = max(self._cursors.beginning, _joined(place.guild) if place.guild else 0)
            last = await self._cursors.open(str(channel), last)
        if place.channel is None:
            return
        after = discord.Object(last)
        async for message in place.channel.history(limit=None, after=after, oldest_first=True):
            await self._hand_over(message)
        await self._cursors.save(str(channel))


def _joined(guild: discord.Guild) -> int:
    """Since when we are there, as an id."""
    me: Any = guild.me  # None where Discord did not say
    moment = me.joined_at if me else None
    return discord.utils.time_snowflake(moment) if moment else 0
