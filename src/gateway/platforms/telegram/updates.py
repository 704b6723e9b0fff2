"""Receives Telegram updates by long polling or a webhook.

Telegram drops updates below the `offset` of a request and delivers the others again, so the
offset advances only past updates that are stored. Each chat has its own queue: a file that takes
long to download, or a message that cannot be stored, holds up no other chat.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from aiogram.exceptions import (
    AiogramError,
    TelegramConflictError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import TelegramMethod
from aiohttp import ClientError
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.platforms.ordered_queues import OrderedQueues
from gateway.platforms.problems import UNREACHABLE
from gateway.platforms.reconnect import ReconnectDelay
from gateway.platforms.request_body import BodyTimeoutError, BodyTooLargeError, read_body
from gateway.platforms.telegram.messages import UPDATE_TYPES
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiogram import Bot
    from starlette.requests import Request
    from starlette.responses import Response

    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.telegram.results import TokenRedactor
    from hermes_core.json_values import JsonObject

    HandleUpdate = Callable[[JsonObject], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 1024 * 1024
SECRET_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
WEBHOOK_HEADER: Final = "x-telegram-bot-api-secret-token"
SECRET_VARIABLE: Final = "TELEGRAM_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
DEFAULT_WEBHOOK_PATH: Final = "/telegram"


class TelegramWebhook:
    """The webhook URL and its secret."""

    def __init__(self, address: str, secret: str) -> None:
        parts = urlsplit(address)
        if parts.scheme != "https" or not parts.netloc:
            raise PlatformRefusedError("platforms.telegram.webhook_url must be an https:// URL.")
        if not SECRET_PATTERN.fullmatch(secret):
            text = (
                f"platforms.telegram.webhook_url requires {SECRET_VARIABLE}: 1-256 of A-Za-z0-9_-"
            )
            raise PlatformRefusedError(text)
        self.path = parts.path if parts.path.strip("/") else DEFAULT_WEBHOOK_PATH
        self.address = urlunsplit(parts._replace(path=self.path))
        self.secret = secret
        self._turn = asyncio.Lock()

    def route(self, handle: HandleUpdate) -> Route:
        """The route that passes each update to *handle*, one after another."""

        async def deliver(request: Request) -> Response:
            return await self._deliver(request, handle)

        return Route(self.path, deliver, methods=["POST"])

    async def _deliver(self, request: Request, handle: HandleUpdate) -> Response:
        shown = request.headers.get(WEBHOOK_HEADER, "").encode()
        if not hmac.compare_digest(shown, self.secret.encode()):
            return PlainTextResponse("forbidden", 403)
        try:
            body = await read_body(request, MAX_BODY_BYTES)
        except BodyTooLargeError:
            return PlainTextResponse("too large", 413)
        except BodyTimeoutError:
            return PlainTextResponse("not sent in time", 408)
        update = _read(body)
        if update is None:
            return PlainTextResponse("not an update", 400)
        try:
            async with self._turn:
                await handle(update)
        except (OSError, HermesError) as error:
            log.error("Telegram update not stored, expecting redelivery: %s", error)
            return PlainTextResponse("not stored", 503)
        return PlainTextResponse("ok")


def _chat_of(update: JsonObject) -> str:
    """The chat of an update, as far as it can be read."""
    for name in UPDATE_TYPES:
        message = update.get(name)
        chat = message.get("chat") if isinstance(message, dict) else None
        if isinstance(chat, dict):
            return str(chat.get("id"))
    return ""


def _read(body: bytes) -> JsonObject | None:
    try:
        update = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return update if isinstance(update, dict) and isinstance(update.get("update_id"), int) else None


POLL_BACKOFF: Final = Backoff(1.0, 60.0)
POLLING_PROBLEM: Final = "polling"
MAX_CONFLICTS: Final = 3
OPEN_POLL_SECONDS: Final = 1.0  # between requests while an update is not stored
TOKEN_ERRORS: Final = (TelegramUnauthorizedError, TelegramNotFound)
EXTRA_TIMEOUT_SECONDS: Final = 15  # on top of the polling timeout
POLLING_CONFLICT: Final = (
    "Another program is polling updates of this bot. Stop it, or use a separate bot token for "
    "this gateway."
)
WEBHOOK_CONFLICT: Final = (
    "Another program has set a webhook for this bot, so Telegram rejects polling. Stop that "
    "program, then restart the gateway."
)
REVOKED_TEXT: Final = "Telegram rejected the token. Get a new one from @BotFather."


class RawUpdates(TelegramMethod[list[dict[str, Any]]]):
    """`getUpdates` with raw updates: an unreadable one does not affect the others."""

    __returning__ = list[dict[str, Any]]
    __api_method__ = "getUpdates"

    offset: int | None = None
    timeout: int = 0
    allowed_updates: tuple[str, ...] = UPDATE_TYPES


class UpdatePoller:
    """Polls for updates until cancelled.

    At most one response of updates is open, because each request starts at the oldest one.
    """

    def __init__(
        self,
        bot: Bot,
        handle: HandleUpdate,
        clean: TokenRedactor,
        problems: ConnectionProblems,
        wait_seconds: int,
        backoff: Backoff = POLL_BACKOFF,
    ) -> None:
        self._bot = bot
        self._handle = handle
        self._clean = clean
        self._wait_seconds = wait_seconds
        self._problems = problems
        self._delay = ReconnectDelay(backoff)
        self._queues = OrderedQueues("Telegram", backoff, request_errors=(ClientError,))
        self._open: dict[int, asyncio.Event] = {}  # updates that are not stored, by their IDs
        self._latest = -1  # the last update that was received
        self._stored: set[int] = set()  # which the request that is open may return again
        self._conflicts = 0  # in a row
        self._last_warning = ""

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                try:
                    updates = await self._poll()
                except (AiogramError, OSError, ValueError) as error:
                    await self._handle_error(error)
                    continue
                self._conflicts = 0
                self._problems.clear(POLLING_PROBLEM)
                self._problems.clear(UNREACHABLE)
                self._recover()
                self._enqueue(updates)
                await self._wait_for_stored()
        finally:
            await self._queues.close()
            self._latest = self._first_open() - 1
            self._open.clear()
            self._stored.clear()

    async def _handle_error(self, error: Exception) -> None:
        """Log the error and wait; longer if Telegram rejects the bot."""
        text = self._describe(error)
        self._warn(text)
        is_refused = isinstance(error, TOKEN_ERRORS)
        self._conflicts += isinstance(error, TelegramConflictError)
        # Our own aborted request can conflict with the next one for a moment.
        if is_refused or self._conflicts >= MAX_CONFLICTS:
            self._problems.note(POLLING_PROBLEM, text)
        retry_after = error.retry_after if isinstance(error, TelegramRetryAfter) else 0
        pause = self._delay.next_delay(is_refused=is_refused)
        if not isinstance(error, TelegramConflictError | TelegramRetryAfter):
            self._problems.note_failure(self._delay.failures, text)
        await asyncio.sleep(max(pause, retry_after))

    async def _poll(self) -> list[JsonObject]:
        first = self._first_open()
        self._stored = {item for item in self._stored if item >= first}
        seconds = 0 if self._open else self._wait_seconds  # Telegram returns open ones at once
        method = RawUpdates(offset=first or None, timeout=seconds)
        return await self._bot(method, request_timeout=seconds + EXTRA_TIMEOUT_SECONDS)

    def _enqueue(self, updates: list[JsonObject]) -> None:
        """Handle new updates, those of a chat in order."""
        for update in updates:
            update_id = int(str(update["update_id"]))
            if update_id not in self._open and update_id not in self._stored:
                self._open[update_id] = asyncio.Event()
                self._latest = max(self._latest, update_id)
                job = functools.partial(self._store, update_id, update)
                self._queues.add(_chat_of(update), job, job)

    async def _store(self, update_id: int, update: JsonObject) -> None:
        await self._handle(update)
        self._open.pop(update_id).set()
        self._stored.add(update_id)

    def _first_open(self) -> int:
        """The first update that is not stored."""
        return min(self._open, default=self._latest + 1)

    async def _wait_for_stored(self) -> None:
        """Wait until the oldest update is stored, but look for new ones after a while."""
        if self._open:
            oldest = self._open[min(self._open)]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(OPEN_POLL_SECONDS):
                    await oldest.wait()

    def _describe(self, error: Exception) -> str:
        if isinstance(error, TelegramConflictError):
            return WEBHOOK_CONFLICT if "webhook" in error.message else POLLING_CONFLICT
        if isinstance(error, TOKEN_ERRORS):
            return REVOKED_TEXT
        return self._clean(error)

    def _warn(self, text: str) -> None:
        """Log a problem once while it lasts."""
        if text != self._last_warning:
            log.warning("Telegram polling failed: %s", text)
        self._last_warning = text

    def _recover(self) -> None:
        if self._last_warning:
            log.info("Telegram polling recovered")
        self._last_warning = ""
        self._delay.reset()
