"""Listens to Discord, channel by channel, without gaps.

Discord does not redeliver WebSocket events to a new process and never delivers messages sent
during an absence. So every known channel is read over HTTP when a session starts, from its
cursor to the newest message, before newer messages of the channel are received.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import discord
from aiohttp import ClientError
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from gateway import config_values
from gateway.platforms.base import COMMAND_PREFIX, MessageEvent, MessageType, pressed
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.discord import results
from gateway.platforms.names import Platform
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS, OrderedQueues
from gateway.platforms.reconnect import RECONNECT_BACKOFF
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError, PlatformDownError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gateway.platforms.base import Button, Memory, MenuCommand, Receive
    from gateway.platforms.cursors import Cursors
    from gateway.platforms.discord.messages import DiscordMessageReader
    from gateway.platforms.ordered_queues import Job
    from gateway.platforms.quarantine import UpdateGuard
    from hermes_core.backoff import Backoff
    from hermes_core.errors import PlatformError

ARGUMENTS_OPTION: Final = "arguments"
MAX_HELP_CHARS: Final = 100
REGISTER_SECONDS: Final = 30.0


def view_of(buttons: Sequence[Button]) -> discord.ui.View | None:
    """The buttons below a message; the library need not remember them."""
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(discord.ui.Button(label=button.label, custom_id=button.data))
    view.stop()
    return view


def event_of(interaction: discord.Interaction, source: SessionSource) -> MessageEvent | None:
    """The message that a command or a pressed button sends; None for anything else."""
    data: dict[str, Any] = dict(interaction.data or {})
    if interaction.type is discord.InteractionType.component:
        return pressed(config_values.text(data.get("custom_id")), source, str(interaction.id))
    if interaction.type is not discord.InteractionType.application_command:
        return None
    arguments = [
        config_values.text(option.get("value"))
        for option in data.get("options") or []
        if isinstance(option, dict)
    ]
    text = " ".join([f"/{config_values.text(data.get('name'))}", *arguments]).strip()
    return MessageEvent(
        text,
        MessageType.COMMAND,
        source,
        message_id=f"{COMMAND_PREFIX}{interaction.id}",
        timestamp=interaction.created_at.timestamp(),
    )


async def confirm(interaction: discord.Interaction, event: MessageEvent | None) -> None:
    """Confirm an interaction, which Discord shows as failed otherwise."""
    try:
        if interaction.type is discord.InteractionType.component:
            await interaction.response.edit_message(view=None)
        else:
            shown = event.text if event is not None else "?"
            await interaction.response.send_message(f"`{shown[:100]}`", ephemeral=True)
    except (discord.DiscordException, ClientError, OSError) as error:  # also if it took 3 s
        log.info("Discord interaction not confirmed: %s", results.describe_error(error))


async def register_commands(
    client: discord.Client, commands: Sequence[MenuCommand], memory: Memory
) -> None:
    """Register the commands of the bot if they have changed; it also works without them."""
    payload = [_command(command) for command in commands]
    digest = hashlib.sha256(json.dumps(payload).encode()).hexdigest()
    name = f"commands:{client.application_id}"
    if not payload or client.application_id is None or await memory.recall(name) == digest:
        return
    try:
        async with asyncio.timeout(REGISTER_SECONDS):
            await client.http.bulk_upsert_global_commands(client.application_id, payload)
    except (discord.DiscordException, ClientError, OSError) as error:
        log.warning("Discord commands not registered: %s", results.describe_error(error))
        return
    await memory.keep(name, digest)


def _command(command: MenuCommand) -> dict[str, Any]:
    arguments = {
        "type": discord.AppCommandOptionType.string.value,
        "name": ARGUMENTS_OPTION,
        "description": (command.hint or "optional")[:MAX_HELP_CHARS],
        "required": False,
    }
    return {
        "type": discord.AppCommandType.chat_input.value,
        "name": command.name,
        "description": command.help[:MAX_HELP_CHARS],
        "options": [arguments] if command.hint else [],
    }


log = logging.getLogger(__name__)

OPEN_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
IDENTIFY_SECONDS: Final = 5.0  # the rate limit of Discord for new sessions
MAX_RATE_LIMIT_SECONDS: Final = 3.0  # the longest wait inside the library
REQUEST_ERRORS: Final = (discord.DiscordException, ClientError, OSError, TimeoutError)


class DiscordEventHandler(Protocol):
    """Receives the events of a client; its methods do not block."""

    def session_started(self) -> None:
        """A session has started; earlier messages have to be fetched."""

    def message_created(self, message: discord.Message) -> None:
        """A message was sent."""

    def message_edited(self, message: discord.Message) -> None:
        """A message was edited."""

    def messages_deleted(self, channel: int, message_ids: Iterable[int]) -> None:
        """Messages were deleted."""

    def interaction_created(self, interaction: discord.Interaction) -> None:
        """A command was typed, or a button pressed."""

    def event_failed(self, name: str, data: object, error: Exception) -> None:
        """An event cannot be read."""

    def guild_available(self, guild: discord.Guild) -> None:
        """The channels of a server are known."""


class DiscordClient(discord.Client):
    """The library client with minimal intents and caches."""

    handler: DiscordEventHandler  # set before the connection opens

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
        # The constructor only accepts 30 s or more, which would block a send for that long.
        self.http.max_ratelimit_timeout = MAX_RATE_LIMIT_SECONDS
        # An event that the library cannot read would end the connection.
        parsers = self._connection.parsers
        for name in parsers.keys() - {"READY"}:
            parsers[name] = functools.partial(self._parse, name, parsers[name])
        self._identify_seconds = identify_seconds
        self.session_opened = asyncio.Event()

    def _parse(self, name: str, parse: Callable[[Any], object], data: Any) -> None:
        result = attempt(f"read {name} of Discord", lambda: parse(data))
        if isinstance(result, Failure):
            self.handler.event_failed(name, data, result.error)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait before another session is opened."""
        if not initial:
            await asyncio.sleep(self._identify_seconds)

    def dispatch(self, event: str, /, *args: Any, **options: Any) -> None:
        """Dispatch an event, unless the client is closed."""
        if not self.is_closed():
            super().dispatch(event, *args, **options)

    async def on_connect(self) -> None:
        """A new session; resumed ones are not reported here."""
        self.session_opened.set()
        self.handler.session_started()

    async def on_message(self, message: discord.Message) -> None:
        """A new message."""
        self.handler.message_created(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """An edited message."""
        self.handler.message_edited(payload.message)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """A deleted message."""
        self.handler.messages_deleted(payload.channel_id, [payload.message_id])

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Several messages, deleted at once."""
        self.handler.messages_deleted(payload.channel_id, sorted(payload.message_ids))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """A command or a pressed button."""
        self.handler.interaction_created(interaction)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """A server whose data has arrived."""
        self.handler.guild_available(guild)


class DiscordSession:
    """One session of a client; the library resumes it where possible."""

    def __init__(self, client: DiscordClient) -> None:
        self.client = client
        self._running: asyncio.Task[None] | None = None

    async def log_in(self, token: str, base_url: str) -> str:
        """Log in; the account ID. *base_url* replaces the Discord API URL."""
        if base_url:
            Route.BASE = base_url
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self.client.login(token)
                if base_url:
                    _, url, *_ = await self.client.http.get_bot_gateway()
                    DiscordWebSocket.DEFAULT_GATEWAY = URL(url)
        except (*REQUEST_ERRORS, KeyError, TypeError) as error:  # the last two: not a Discord API
            raise results.platform_error(error) from error
        return str(self.client.user.id) if self.client.user else ""

    async def open(self, handler: DiscordEventHandler) -> None:
        """Open the connection; returns once the session is ready."""
        self.client.handler = handler
        self._running = asyncio.create_task(self.client.connect(reconnect=False))
        ready = asyncio.create_task(self.client.session_opened.wait())
        try:
            await asyncio.wait(
                [self._running, ready],
                timeout=OPEN_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            ready.cancel()
        if self._running.done():
            raise await self.ended()
        if not self.client.session_opened.is_set():
            raise results.platform_error(TimeoutError("no session was opened"))

    async def ended(self) -> PlatformError:
        """Wait for the end of the session; the reason."""
        if self._running is None:
            return results.platform_error(ConnectionError("the connection was never opened"))
        await asyncio.wait([self._running])
        error = None if self._running.cancelled() else self._running.exception()
        if isinstance(error, Exception):  # the library can raise anything on unexpected events
            return results.platform_error(error)
        return results.platform_error(ConnectionError("the connection was closed"))

    async def close(self) -> None:
        """Close the connection."""
        running, self._running = self._running, None
        if running is not None:
            if not self.client.is_closed():  # else the task ends on its own
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


MAX_CONCURRENT_READS: Final = 4  # of channel histories
SNOWFLAKES_PER_HOUR: Final = 3_600_000 << 22  # snowflake IDs contain milliseconds
# Raised by the library for an unexpected message format; the rest of the channel is skipped.
LIBRARY_ERRORS: Final = (AttributeError, KeyError, TypeError, ValueError)


def id_of_now() -> int:
    """The ID of a message sent now."""
    return discord.utils.time_snowflake(datetime.now(UTC))


class DiscordListener:
    """Receives messages in order per channel."""

    def __init__(
        self,
        reader: DiscordMessageReader,
        cursors: Cursors,
        receive: Receive,
        guard: UpdateGuard,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self._guard = guard
        self._reader = reader
        self._cursors = cursors
        self._receive = receive
        self._queues = OrderedQueues("Discord", backoff, max_queued, (ClientError,))
        self._client: DiscordClient | None = None
        self._caught_up: set[int] = set()  # channels that were read in this session
        self._received = RecentItems()
        self._read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)

    def use(self, client: DiscordClient) -> None:
        """Use another client."""
        self._client = client
        self._reader.use(client)

    async def drop(self) -> None:
        """Drop queued messages: the next session reads them again."""
        await self._queues.close()

    # Events

    def session_started(self) -> None:
        """Catch up in every known channel."""
        self._caught_up = set()
        for channel in self._cursors.channels:
            self._queue_catch_up(int(channel))

    def guild_available(self, guild: discord.Guild) -> None:
        """Catch up in unknown channels with messages from before the session."""
        start = max(self._cursors.start, _joined_id(guild))
        channels: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
        for channel in channels:
            is_new = self._cursors.last(str(channel.id)) is None
            if is_new and (channel.last_message_id or 0) > start:
                self._queue_catch_up(channel.id)

    def message_created(self, message: discord.Message) -> None:
        """Queue a message."""
        self._enqueue(message.channel.id, functools.partial(self._receive_new, message))

    def message_edited(self, message: discord.Message) -> None:
        """Queue an edit, unless only a link preview was added."""
        if message.edited_at is not None:
            self._enqueue(message.channel.id, functools.partial(self._receive_edit, message))

    def messages_deleted(self, channel: int, message_ids: Iterable[int]) -> None:
        """Queue deletions, after the messages themselves."""
        for message_id in message_ids:
            self._enqueue(channel, functools.partial(self._receive_deletion, channel, message_id))

    def interaction_created(self, interaction: discord.Interaction) -> None:
        """Queue a command or a pressed button, after the messages before it."""
        if interaction.channel_id is not None:
            job = functools.partial(self._receive_interaction, interaction)
            self._enqueue(interaction.channel_id, job)

    def event_failed(self, name: str, data: object, error: Exception) -> None:
        """Set aside an event that cannot be read."""
        number = data.get("id") if isinstance(data, dict) else None
        reason = f"{type(error).__name__}: {error}"
        job = functools.partial(self._guard.set_aside, f"{name} {number}", data, reason)
        self._queues.add("", job, job)

    def _queue_catch_up(self, channel: int) -> None:
        self._enqueue(channel, functools.partial(self._catch_up, channel))

    def _enqueue(self, channel: int, job: Job) -> None:
        catch_up = functools.partial(
            self._guarded, functools.partial(self._catch_up_again, channel)
        )
        self._queues.add(str(channel), functools.partial(self._guarded, job), catch_up)

    async def _guarded(self, job: Job) -> None:
        """Run a job; an error of a closed client is not an error of the message."""
        try:
            await job()
        except RuntimeError as error:
            if self._client is None or self._client.is_closed():
                raise PlatformDownError("the connection has ended") from error
            raise

    # One channel

    async def _receive_new(self, message: discord.Message) -> None:
        channel = message.channel.id
        await self._catch_up(channel)
        await self._receive_once(message)
        if not self._queues.is_waiting(str(channel)):
            await self._cursors.save(str(channel))

    async def _receive_edit(self, message: discord.Message) -> None:
        await self._read_and_receive(message, is_edit=True)

    async def _read_and_receive(self, message: discord.Message, *, is_edit: bool) -> None:
        kind = "edit" if is_edit else "message"
        work = self._read(message, is_edit=is_edit)
        await self._guard.handle(f"{kind} {message.id}", repr(message), work)

    async def _read(self, message: discord.Message, *, is_edit: bool) -> None:
        event = await self._reader.read(message, is_edit=is_edit)
        if event is not None:
            await self._receive(event)

    async def _receive_deletion(self, channel: int, message_id: int) -> None:
        source = SessionSource(Platform.DISCORD, str(channel))
        await self._receive(
            MessageEvent("", source=source, message_id=str(message_id), is_deletion=True)
        )

    async def _receive_interaction(self, interaction: discord.Interaction) -> None:
        events: list[MessageEvent | None] = []

        async def read() -> None:
            source = await self._reader.source_of(interaction.user, interaction.channel)
            events.append(event := event_of(interaction, source))
            if event is not None:
                await self._receive(event)

        await self._guard.handle(f"interaction {interaction.id}", repr(interaction), read())
        await confirm(interaction, events[0] if events else None)

    async def _receive_once(self, message: discord.Message) -> None:
        if message.id in self._received:
            return
        await self._read_and_receive(message, is_edit=False)
        await self._cursors.reached(str(message.channel.id), message.id)
        self._received.add(message.id)

    async def _catch_up_again(self, channel: int) -> None:
        """Receive the messages that did not fit into the queue."""
        self._caught_up.discard(channel)
        await self._catch_up(channel)

    async def _catch_up(self, channel: int) -> None:
        """Receive the missed messages of a channel, once per session."""
        if channel in self._caught_up:
            return
        caught_up = self._caught_up
        try:
            async with self._read_slots:
                await self._read_history(channel)
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
        caught_up.add(channel)

    async def _read_history(self, channel: int) -> None:
        if self._client is None or self._client.is_closed():
            raise PlatformDownError("not connected")
        last = self._cursors.last(str(channel))
        chat = await self._reader.find_channel(channel)
        if last is None:
            last = max(self._cursors.start, _joined_id(chat.guild) if chat.guild else 0)
            last = await self._cursors.open(str(channel), last)
        if chat.channel is None:
            return
        after = discord.Object(last)
        async for message in chat.channel.history(limit=None, after=after, oldest_first=True):
            await self._receive_once(message)
        await self._cursors.save(str(channel))


def _joined_id(guild: discord.Guild) -> int:
    """The time the bot joined a server, as an ID."""
    me: Any = guild.me  # None if Discord did not send it
    moment = me.joined_at if me else None
    return discord.utils.time_snowflake(moment) if moment else 0
