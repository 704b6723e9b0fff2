"""Discord, as a bot.

Requires `DISCORD_BOT_TOKEN`, and MESSAGE CONTENT INTENT enabled in the Developer Portal. In a
channel the bot needs the permissions View Channel, Send Messages and Read Message History.

Under `platforms.discord` in config.yaml:

    base_url  another API URL, for tests: http://127.0.0.1:8080/api/v10

After an absence the bot fetches missed messages from every known channel and every channel of
its servers. Discord does not list direct chats with new users: their first messages, sent
during an absence, are read together with their next one. Edits during an absence are missed.

A message in a thread has the thread ID as `thread_id` and the parent channel as `chat_id`.
Replies never ping users. A text that is sent twice under the same key is one message for as
long as Discord remembers the key, a few minutes.
"""

from __future__ import annotations

import asyncio
import functools
import io
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

import discord

from gateway import config_values
from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.cursors import Cursors
from gateway.platforms.deduplication import idempotency_key
from gateway.platforms.discord import results
from gateway.platforms.discord.listener import (
    IDENTIFY_SECONDS,
    REQUEST_ERRORS,
    SNOWFLAKES_PER_HOUR,
    DiscordClient,
    DiscordListener,
    DiscordSession,
    id_of_now,
    register_commands,
    view_of,
)
from gateway.platforms.discord.messages import DiscordFiles, DiscordMessageReader
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS
from gateway.platforms.problems import UNREACHABLE, ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from gateway.platforms.reconnect import RECONNECT_BACKOFF, ReconnectDelay
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.backoff import Backoff

log = logging.getLogger(__name__)

NONCE_SECONDS: Final = 120.0  # Discord remembers a nonce for a few minutes
TOKEN_VARIABLE: Final = "DISCORD_BOT_TOKEN"  # noqa: S105 - the name of a variable
SEND_SECONDS: Final = 60.0
MAX_TEXT_CHARS: Final = 1900  # Discord takes 2000
MAX_NONCE_CHARS: Final = 25


class DiscordAdapter(ReportsProblem):
    """A bot on Discord."""

    abilities: ClassVar = Abilities(
        edit=True,
        typing=True,
        reactions=True,
        files=True,
        threads=True,
        buttons=True,
        idempotent=True,
        idempotent_seconds=NONCE_SECONDS,
        longest_text=MAX_TEXT_CHARS,
    )

    def __init__(
        self,
        context: AdapterContext,
        backoff: Backoff = RECONNECT_BACKOFF,
        identify_seconds: float = IDENTIFY_SECONDS,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self.account = ""
        self._problems = ConnectionProblems("Discord")
        self._context = context
        self._backoff = backoff
        self._identify_seconds = identify_seconds
        self._max_queued = max_queued
        self._base_url = config_values.text(context.config.extra.get("base_url")).rstrip("/")
        self._session: DiscordSession | None = None
        self._listener: DiscordListener | None = None
        self._reader: DiscordMessageReader | None = None
        self._session_task: asyncio.Task[None] | None = None

    # Connection

    async def connect(self, receive: Receive) -> None:
        """Log in, open a session and fetch missed messages."""
        await self.disconnect()
        self._problems.clear_all()
        session = await self._open(receive)
        keep = functools.partial(self._keep_session, session, receive)
        self._session_task = self._problems.start_listener(keep, self._backoff)

    async def _open(self, receive: Receive) -> DiscordSession:
        self._session = session = DiscordSession(DiscordClient(self._identify_seconds))
        self.account = await session.log_in(self._context.secret(TOKEN_VARIABLE), self._base_url)
        if self._listener is None:
            self._listener = await self._create_listener(receive)
        self._listener.use(session.client)
        await session.open(self._listener)
        await register_commands(session.client, self._context.commands, self._context.memory)
        return session

    async def _create_listener(self, receive: Receive) -> DiscordListener:
        cursors = Cursors(self._context.memory, self.account, SNOWFLAKES_PER_HOUR)
        await cursors.load(id_of_now())
        context = self._context
        files = DiscordFiles(self._base_url, context.media, context.is_accepted)
        self._reader = DiscordMessageReader(int(self.account), files)
        guard = UpdateGuard(self._context.quarantine, REQUEST_ERRORS)
        return DiscordListener(
            self._reader, cursors, receive, guard, self._backoff, self._max_queued
        )

    async def _keep_session(self, session: DiscordSession, receive: Receive) -> None:
        """Open another session whenever one ends; less often if Discord rejects the bot."""
        delay = ReconnectDelay(self._backoff)
        delay.connected()
        error = await session.ended()
        while True:
            is_refused = isinstance(error, PlatformRefusedError)
            if is_refused:
                self._problems.note(TOKEN_VARIABLE, str(error))
            pause = delay.next_delay(is_refused=is_refused)
            self._problems.note_failure(delay.failures, str(error))
            log.warning("connection to Discord lost: %s; reconnecting in %g s", error, pause)
            if self._listener is not None:
                await self._listener.drop()
            await asyncio.sleep(pause)
            try:
                await self._close_session()
                session = await self._open(receive)
                delay.connected()
                self._problems.clear(TOKEN_VARIABLE)
                self._problems.clear(UNREACHABLE)
                error = await session.ended()
            except PlatformError as failure:
                error = failure

    async def disconnect(self) -> None:
        """Stop listening."""
        task, self._session_task = self._session_task, None
        listener, self._listener = self._listener, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if listener is not None:
            await listener.drop()
        await self._close_session()

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # Sending

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file; the key is the nonce by which Discord deduplicates."""
        options: dict[str, Any] = {"nonce": idempotency_key(outgoing.key)[:MAX_NONCE_CHARS]}
        if (view := view_of(outgoing.buttons)) is not None:
            options["view"] = view
        try:
            channel = self._channel(outgoing.thread_id or outgoing.chat_id)
            if outgoing.reply_to:
                options["reference"] = _reference(outgoing.reply_to, channel.id)
            if outgoing.file is not None:
                data = await asyncio.to_thread(outgoing.file.read_bytes)
                options["file"] = discord.File(io.BytesIO(data), outgoing.file.name)
        except PlatformDownError:
            return self._problems.not_connected
        except (OSError, ValueError) as error:
            text = f"message cannot be sent: {error}"
            return SendResult(False, error=text, error_kind=ErrorKind.NOT_FOUND)
        return await _send_result(channel.send(outgoing.text or None, **options))

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a message."""
        try:
            channel = self._channel(outgoing.thread_id or outgoing.chat_id)
            message = channel.get_partial_message(int(message_id))
        except PlatformDownError:
            return self._problems.not_connected
        except ValueError as error:
            return SendResult(False, error=str(error), error_kind=ErrorKind.NOT_FOUND)
        no_mentions = discord.AllowedMentions.none()
        return await _send_result(message.edit(content=outgoing.text, allowed_mentions=no_mentions))

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show the typing indicator."""
        try:
            channel = self._channel(thread_id or chat_id)
            async with asyncio.timeout(SEND_SECONDS):
                await channel.typing()
        except (*REQUEST_ERRORS, PlatformDownError, ValueError) as error:
            log.info("typing indicator not shown: %s", results.describe_error(error))

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Add an emoji reaction."""
        try:
            channel_id = self._reader.channel_of(chat_id, message_id) if self._reader else chat_id
            message = self._channel(channel_id).get_partial_message(int(message_id))
            async with asyncio.timeout(SEND_SECONDS):
                await message.add_reaction(emoji)
        except (*REQUEST_ERRORS, PlatformDownError, ValueError) as error:
            log.info("reaction not added: %s", results.describe_error(error))

    def _channel(self, name: str) -> discord.PartialMessageable:
        session = self._session
        if session is None or not session.client.session_opened.is_set():
            raise PlatformDownError("Discord is not connected")
        return session.client.get_partial_messageable(int(name))


def make(context: AdapterContext) -> DiscordAdapter:
    """Create the adapter."""
    return DiscordAdapter(context)


async def _send_result(request: Awaitable[Any]) -> SendResult:
    """The result of a request."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            message = await request
    except REQUEST_ERRORS as error:
        return results.failure(error)
    return SendResult(True, message_id=str(message.id))


def _reference(message_id: str, channel: int) -> discord.MessageReference:
    return discord.MessageReference(
        message_id=int(message_id), channel_id=channel, fail_if_not_exists=False
    )
