"""Telegram, as a bot of its Bot API.

Requires TELEGRAM_BOT_TOKEN from @BotFather. By default it polls for updates; with `webhook_url`
Telegram calls the HTTP server of the gateway instead, which requires TELEGRAM_WEBHOOK_SECRET.
Under `platforms.telegram` in config.yaml:

    base_url      another Bot API server (default: https://api.telegram.org)
    poll_seconds  timeout of long polling (default: 30)
    webhook_url   the https URL under which Telegram reaches the HTTP server of the gateway;
                  its path is the route there (default path: /telegram)

In groups the bot is addressed by a mention, a reply, or its name in a command (/new@the_bot).
With privacy mode on, the default, Telegram delivers nothing else from groups.

Telegram keeps messages for a day. Messages from before the first start are ignored, except those
of the last ten minutes: the user who sets up a bot has often just written to it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, ClassVar, Final

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import (
    AiogramError,
    TelegramBadRequest,
    TelegramNotFound,
    TelegramUnauthorizedError,
)
from aiogram.types import BotCommand, CallbackQuery, Message, Update, User
from aiogram.utils.token import TokenValidationError
from aiohttp import ClientError
from pydantic import ValidationError

from gateway import config_values
from gateway.platforms.base import Abilities, OutgoingMessage, SendResult
from gateway.platforms.problems import ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from gateway.platforms.telegram.messages import UPDATE_TYPES, TelegramFiles, read_press, read_update
from gateway.platforms.telegram.results import TokenRedactor
from gateway.platforms.telegram.sender import MAX_CHUNK_CHARS, TelegramSender
from gateway.platforms.telegram.updates import (
    POLL_BACKOFF,
    SECRET_VARIABLE,
    TelegramWebhook,
    UpdatePoller,
)
from hermes_core.errors import PlatformDownError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.backoff import Backoff
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

ROUTE_OWNER: Final = "telegram"
POLL_SECONDS: Final = 30
FIRST_START_GRACE_SECONDS: Final = 600
REQUEST_SECONDS: Final = 20
MAX_MENU_CHARS: Final = 256
UNAUTHORIZED_TEXT: Final = (
    "Telegram rejected the token. Send /token to @BotFather to see the right one, or /newbot to "
    "create a bot, and set TELEGRAM_BOT_TOKEN."
)


class TelegramAdapter(ReportsProblem):
    """A Telegram bot; updates arrive by long polling or by a webhook."""

    abilities: ClassVar = Abilities(
        edit=True,
        typing=True,
        reactions=True,
        files=True,
        threads=True,
        buttons=True,
        longest_text=MAX_CHUNK_CHARS,
    )

    def __init__(self, context: AdapterContext, backoff: Backoff = POLL_BACKOFF) -> None:
        self.account = ""
        self._problems = ConnectionProblems("Telegram")
        self._context = context
        self._backoff = backoff
        self._token = context.secret("TELEGRAM_BOT_TOKEN")
        self._clean = TokenRedactor(self._token)
        self._webhook = _webhook(context)
        self._bot: Bot | None = None
        self._sender: TelegramSender | None = None
        self._task: asyncio.Task[None] | None = None

    # Listening

    async def connect(self, receive: Receive) -> None:
        """Look up the account of the bot and start listening."""
        await self.disconnect()
        self._problems.clear_all()
        self._bot = bot = self._create_bot()
        try:
            me = await bot.get_me(request_timeout=REQUEST_SECONDS)
            self.account = str(me.id)
            context = self._context
            files = TelegramFiles(bot, context.media, self._clean, context.is_accepted)
            since = await self._first_start() - FIRST_START_GRACE_SECONDS
            guard = UpdateGuard(self._context.quarantine, (ClientError,))
            await self._listen(bot, _UpdateHandler(bot, me, receive, files, since, guard))
        except (TelegramUnauthorizedError, TelegramNotFound) as error:
            await self.disconnect()
            raise PlatformRefusedError(UNAUTHORIZED_TEXT) from error
        except TelegramBadRequest as error:
            await self.disconnect()
            raise PlatformRefusedError(
                f"Telegram rejected the request: {self._clean(error)}"
            ) from None
        except AiogramError as error:
            await self.disconnect()
            raise PlatformDownError(f"Telegram: {self._clean(error)}") from None
        self._sender = TelegramSender(bot, self._clean)
        await self._set_menu(bot)
        log.info("Telegram connected: @%s", me.username)

    async def _set_menu(self, bot: Bot) -> None:
        """Set the command menu of the bot; it also works without one."""
        commands = [
            BotCommand(command=item.name, description=item.help[:MAX_MENU_CHARS])
            for item in self._context.commands
        ]
        try:
            if commands:
                await bot.set_my_commands(commands, request_timeout=REQUEST_SECONDS)
        except AiogramError as error:
            log.warning("Telegram command menu not set: %s", self._clean(error))

    async def _first_start(self) -> int:
        """When this bot was first started."""
        memory, name = self._context.memory, f"since:{self.account}"
        stored = await memory.recall(name)
        if stored is None:
            stored = str(int(time.time()))
            await memory.keep(name, stored)
        return int(stored)

    def _create_bot(self) -> Bot:
        base = config_values.text(self._context.config.extra.get("base_url"))
        api = TelegramAPIServer.from_base(base) if base else PRODUCTION
        try:
            return Bot(self._token, session=AiohttpSession(api=api))
        except TokenValidationError:
            raise PlatformRefusedError(UNAUTHORIZED_TEXT) from None

    async def _listen(self, bot: Bot, handler: _UpdateHandler) -> None:
        if self._webhook is None:
            await bot.delete_webhook(drop_pending_updates=False, request_timeout=REQUEST_SECONDS)
            seconds = config_values.number(
                self._context.config.extra.get("poll_seconds"), POLL_SECONDS, minimum=1
            )
            polling = UpdatePoller(
                bot, handler, self._clean, self._problems, seconds, self._backoff
            )
            self._task = self._problems.start_listener(polling.run, self._backoff)
            return
        await self._context.front.add(ROUTE_OWNER, [self._webhook.route(handler)])
        await bot.set_webhook(
            self._webhook.address,
            secret_token=self._webhook.secret,
            allowed_updates=list(UPDATE_TYPES),
            max_connections=1,  # keeps the order of messages
            drop_pending_updates=False,
            request_timeout=REQUEST_SECONDS,
        )

    async def disconnect(self) -> None:
        """Stop listening; a webhook stays set, so Telegram keeps new messages meanwhile."""
        if self._webhook is not None:
            self._context.front.remove(ROUTE_OWNER)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        bot, self._bot, self._sender = self._bot, None, None
        if bot is not None:
            await bot.session.close()

    # Sending

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file."""
        return (
            self._problems.not_connected
            if self._sender is None
            else await self._sender.send(outgoing)
        )

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a message."""
        if self._sender is None:
            return self._problems.not_connected
        return await self._sender.edit(outgoing, message_id)

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show the typing indicator."""
        if self._sender is not None:
            await self._sender.typing(chat_id, thread_id)

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Set an emoji reaction; an empty one removes it."""
        if self._sender is not None:
            await self._sender.react(chat_id, message_id, emoji)


class _UpdateHandler:
    """Handles an update of either transport."""

    def __init__(
        self,
        bot: Bot,
        me: User,
        receive: Receive,
        files: TelegramFiles,
        since: float,
        guard: UpdateGuard,
    ) -> None:
        self._guard = guard
        self._bot = bot
        self._me = me
        self._receive = receive
        self._files = files
        self._since = since  # older messages are ignored

    async def __call__(self, raw: JsonObject) -> None:
        """Receive the message of an update; when this returns, it may be acknowledged."""
        await self._guard.handle(str(raw.get("update_id")), raw, self._handle(raw))

    async def _handle(self, raw: JsonObject) -> None:
        try:
            update = Update.model_validate(raw, context={"bot": self._bot})
        except ValidationError as error:
            detail = error.errors(include_input=False)[0]
            what = (raw.get("update_id"), detail["loc"], detail["msg"])
            log.warning("Telegram update %s is unreadable: %s: %s", *what)
            await self._guard.set_aside(str(what[0]), raw, f"{what[1]}: {what[2]}")
            return
        if update.callback_query is not None:
            await self._press(update.callback_query)
            return
        event = await read_update(update, self._me, self._files, self._since)
        if event is not None:
            await self._receive(event)

    async def _press(self, query: CallbackQuery) -> None:
        """Receive the command of a button; then the buttons of the message go."""
        event = read_press(query)
        if event is not None:
            await self._receive(event)
        try:
            await query.answer(request_timeout=REQUEST_SECONDS)
            if isinstance(query.message, Message):
                await query.message.edit_reply_markup(request_timeout=REQUEST_SECONDS)
        except AiogramError as error:  # it may have been pressed twice, or long ago
            log.info("Telegram buttons not removed: %s", type(error).__name__)


def _webhook(context: AdapterContext) -> TelegramWebhook | None:
    address = config_values.text(context.config.extra.get("webhook_url"))
    return TelegramWebhook(address, context.secret(SECRET_VARIABLE)) if address else None


def make(context: AdapterContext) -> TelegramAdapter:
    """Create the adapter."""
    return TelegramAdapter(context)
