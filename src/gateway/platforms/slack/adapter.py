"""Slack, as an app in Socket Mode.

`SLACK_BOT_TOKEN` (xoxb-…) and `SLACK_APP_TOKEN` (xapp-…, scope connections:write) are needed.
The app subscribes to the bot events app_mention, message.channels, message.groups, message.im
and message.mpim. Its bot has the scopes app_mentions:read, channels:history, groups:history,
im:history, mpim:history, chat:write, reactions:write, files:read, files:write, users:read,
channels:read, groups:read, im:read and mpim:read. Without the `:read` ones people and channels
are called by their ids.

What may be written under `platforms.slack` in config.yaml:

    reply_in_thread  false: true makes a thread of every message in a channel that is answered
    base_url         another address of the API, for tests: http://127.0.0.1:8080/api/

An event is acknowledged when it has been received; what is not acknowledged Slack sends again,
three times in about five minutes. What was written during a longer absence is fetched from
the history of the channels and chats that have sent messages before, but for replies in threads.
The first words of a new user, written while the bot was away, are read with their next ones.
Slack knows no key for a text that is sent twice: a send whose answer got lost may have arrived.
Slack shows no typing of bots. The marks of Markdown that Slack does not know are left out.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

from aiohttp import ClientSession, ClientTimeout
from slack_sdk.web.async_client import AsyncWebClient

from gateway import config_values
from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.cursors import Cursors
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS
from gateway.platforms.problems import ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from gateway.platforms.reconnect import RECONNECT_BACKOFF, ReconnectDelay
from gateway.platforms.slack import listener, mrkdwn, results
from gateway.platforms.slack.listener import (
    APP_TOKEN_VARIABLE,
    BOT_TOKEN_VARIABLE,
    NUMBERS_PER_HOUR,
    REQUEST_ERRORS,
    SlackListener,
    SlackSocket,
    number_of_now,
)
from gateway.platforms.slack.messages import SlackFiles, SlackMessageReader

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.backoff import Backoff

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 60.0
MAX_TEXT_CHARS: Final = 3000  # Slack takes 4000, in which `<` is written as `&lt;`
EMOJI_NAMES: Final = {
    "👀": "eyes",
    "👍": "thumbsup",
    "👎": "thumbsdown",
    "✅": "white_check_mark",
    "❌": "x",
    "⏳": "hourglass_flowing_sand",
    "🎉": "tada",
    "❤️": "heart",
    "🤔": "thinking_face",
}


class SlackAdapter(ReportsProblem):
    """An app in a workspace."""

    abilities: ClassVar = Abilities(
        edit=True,
        reactions=True,
        files=True,
        threads=True,
        buttons=True,
        longest_text=MAX_TEXT_CHARS,
    )

    def __init__(
        self,
        context: AdapterContext,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self.account = ""
        self._problems = ConnectionProblems("Slack")
        self._max_queued = max_queued
        self._context = context
        self._backoff = backoff
        self._extra = context.config.extra
        self._base_url = config_values.text(self._extra.get("base_url"))
        self._web: AsyncWebClient | None = None
        self._session: ClientSession | None = None
        self._socket: SlackSocket | None = None
        self._listener: SlackListener | None = None
        self._listen_task: asyncio.Task[None] | None = None

    # Connection

    async def connect(self, receive: Receive) -> None:
        """Look up the account and start task."""
        await self.disconnect()
        self._problems.clear_all()
        secret = self._context.secret
        self._session = session = ClientSession(timeout=ClientTimeout(total=REQUEST_SECONDS))
        web = self._create_web_client(secret(BOT_TOKEN_VARIABLE), session)
        team, me = await self._authenticate(web)
        delay = ReconnectDelay(self._backoff)
        self._socket = socket = SlackSocket(
            web, session, secret(APP_TOKEN_VARIABLE), delay, self._problems
        )
        await socket.open()
        self._web = web
        files = SlackFiles(
            session,
            secret(BOT_TOKEN_VARIABLE),
            self._base_url,
            self._context.media,
            self._context.is_accepted,
        )
        is_threading = config_values.flag(self._extra.get("reply_in_thread"), default=False)
        reader = SlackMessageReader(web, team, me, files, is_threading=is_threading)
        self._listener = await self._create_listener(web, reader, socket, receive)
        listen = functools.partial(socket.run, self._listener)
        self._listen_task = self._problems.start_listener(listen, self._backoff)

    async def _create_listener(
        self, web: AsyncWebClient, reader: SlackMessageReader, socket: SlackSocket, receive: Receive
    ) -> SlackListener:
        cursors = Cursors(self._context.memory, self.account, NUMBERS_PER_HOUR)
        await cursors.load(number_of_now())
        guard = UpdateGuard(self._context.quarantine, REQUEST_ERRORS)
        bounds = (guard, self._backoff, self._max_queued)
        return SlackListener(web, reader, socket, cursors, receive, self._problems, *bounds)

    def _create_web_client(self, token: str, session: ClientSession) -> AsyncWebClient:
        """A client without retries: the gateway decides when to retry."""
        quiet = logging.getLogger(f"{__name__}.library")
        quiet.setLevel(logging.INFO)  # DEBUG would log every message and token
        web = AsyncWebClient(token, session=session, retry_handlers=[], logger=quiet)
        if self._base_url:
            web.base_url = f"{self._base_url.rstrip('/')}/"
        return web

    async def _authenticate(self, web: AsyncWebClient) -> tuple[str, str]:
        try:
            answer = await web.auth_test()
            team, me = str(answer["team_id"]), str(answer["user_id"])
        except (*REQUEST_ERRORS, KeyError) as error:
            raise results.platform_error(error, BOT_TOKEN_VARIABLE) from error
        self.account = f"{team}:{me}"
        return team, me

    async def disconnect(self) -> None:
        """Stop task."""
        task, self._listen_task = self._listen_task, None
        listener, self._listener = self._listener, None
        socket, self._socket = self._socket, None
        session, self._session = self._session, None
        self._web = None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if listener is not None:
            await listener.drop()
        if socket is not None:
            await socket.close()
        if session is not None:
            await session.close()

    # Sending

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file; if Slack rejects the formatting, as plain text."""
        if self._web is None:
            return self._problems.not_connected
        if outgoing.file is not None:
            return await self._send_file(self._web, outgoing)
        text = mrkdwn.render_mrkdwn(outgoing.text)
        result = await self._send_result(self._web.chat_postMessage(**_message(outgoing, text)))
        if result.error_kind is ErrorKind.BAD_FORMAT and not result.may_have_arrived:
            plain = mrkdwn.escape_text(outgoing.text)
            request = self._web.chat_postMessage(**_message(outgoing, plain, mrkdwn=False))
            return await self._send_result(request)
        return result

    async def _send_file(self, web: AsyncWebClient, outgoing: OutgoingMessage) -> SendResult:
        path = outgoing.file
        try:
            data = await asyncio.to_thread(path.read_bytes) if path else b""
        except OSError as error:
            text = f"cannot read the file: {error}"
            return SendResult(False, error=text, error_kind=ErrorKind.NOT_FOUND)
        request = web.files_upload_v2(
            content=data,
            filename=path.name if path else "file",
            channel=outgoing.chat_id,
            initial_comment=mrkdwn.render_mrkdwn(outgoing.text) or None,
            thread_ts=outgoing.thread_id,
        )
        return await self._send_result(request)

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a message."""
        if self._web is None:
            return self._problems.not_connected
        text = mrkdwn.render_mrkdwn(outgoing.text)
        request = self._web.chat_update(channel=outgoing.chat_id, ts=message_id, text=text)
        return await self._send_result(request)

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Add a reaction; Slack identifies emoji by name."""
        name = EMOJI_NAMES.get(emoji)
        if self._web is None or name is None:
            log.info("reaction not added: unsupported emoji, or Slack is not connected")
            return
        request = self._web.reactions_add(channel=chat_id, timestamp=message_id, name=name)
        result = await self._send_result(request)
        if not result.success and result.error != "already_reacted":
            log.info("reaction not added: %s", result.error)

    async def _send_result(self, request: Awaitable[Any]) -> SendResult:
        """The result of a request."""
        try:
            answer = await request
        except REQUEST_ERRORS as error:
            if results.is_token_error(error):
                self._problems.note(
                    BOT_TOKEN_VARIABLE, str(results.platform_error(error, BOT_TOKEN_VARIABLE))
                )
            return results.failure(error)
        self._problems.clear(BOT_TOKEN_VARIABLE)
        return _receipt(answer)


def make(context: AdapterContext) -> SlackAdapter:
    """Create the adapter."""
    return SlackAdapter(context)


def _message(outgoing: OutgoingMessage, text: str, **facts: Any) -> dict[str, Any]:
    """The request parameters; link previews are off, because fetching a URL can leak data."""
    where = {"channel": outgoing.chat_id, "thread_ts": outgoing.thread_id}
    if outgoing.buttons:
        facts["blocks"] = listener.blocks(text, outgoing.buttons)
    return {**where, "text": text, "unfurl_links": False, "unfurl_media": False, **facts}


def _receipt(answer: Any) -> SendResult:
    mapping = config_values.mapping(answer.data)
    files = mapping.get("files")
    uploaded = (
        config_values.mapping(files[0]).get("id") if isinstance(files, list) and files else None
    )
    return SendResult(True, message_id=config_values.text(mapping.get("ts") or uploaded) or None)
