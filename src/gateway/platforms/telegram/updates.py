"""Asking Telegram for updates: one is confirmed only when it, and all before it, are kept.

Telegram forgets what lies below the `offset` of a request and delivers everything else again.
So the offset moves on behind each update that was handed over, and no further.
"""

from __future__ import annotations

import asyncio
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
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.platforms.reconnect import ReconnectDelay
from gateway.platforms.telegram.messages import WANTED
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    Take = Callable[[dict[str, Any]], Awaitable[None]]
    from collections.abc import Awaitable, Callable

    from aiogram import Bot

    from gateway.platforms.refusals import Refusals
    from gateway.platforms.telegram.results import Cleaner

log = logging.getLogger(__name__)

LARGEST_BODY: Final = 1024 * 1024
SECRET: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
HEADER: Final = "x-telegram-bot-api-secret-token"
VARIABLE: Final = "TELEGRAM_WEBHOOK_SECRET"
DEFAULT_PATH: Final = "/telegram"


class Webhook:
    """Where Telegram delivers updates, and the secret it shows there."""

    def __init__(self, address: str, secret: str) -> None:
        parts = urlsplit(address)
        if parts.scheme != "https" or not parts.netloc:
            raise PlatformRefusedError("`webhook_url` of telegram has to be an https:// address")
        if not SECRET.fullmatch(secret):
            text = f"`webhook_url` of telegram needs {VARIABLE}: 1-256 of A-Z a-z 0-9 _ -"
            raise PlatformRefusedError(text)
        self.path = parts.path if parts.path.strip("/") else DEFAULT_PATH
        self.address = urlunsplit(parts._replace(path=self.path))
        self.secret = secret
        self._turn = asyncio.Lock()

    def route(self, take: Take) -> Route:
        """The route that hands each update to *take*, one after the other."""

        async def deliver(request: Request) -> Response:
            return await self._deliver(request, take)

        return Route(self.path, deliver, methods=["POST"])

    async def _deliver(self, request: Request, take: Take) -> Response:
        shown = request.headers.get(HEADER, "").encode()
        if not hmac.compare_digest(shown, self.secret.encode()):
            return PlainTextResponse("forbidden", 403)
        body = await _body(request)
        if body is None:
            return PlainTextResponse("too large", 413)
        update = _read(body)
        if update is None:
            return PlainTextResponse("this is no update", 400)
        try:
            async with self._turn:
                await take(update)
        except (OSError, HermesError) as error:
            log.error("an update of Telegram could not be kept and will come again: %s", error)
            return PlainTextResponse("not kept", 503)
        return PlainTextResponse("ok")


async def _body(request: Request) -> bytes | None:
    """What was sent; None when it is too much."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("update_id"), int) else None


RECONNECT: Final = Backoff(1.0, 60.0)
POLLING: Final = "polling"
CONFLICTS: Final = 3
NO_TOKEN: Final = (TelegramUnauthorizedError, TelegramNotFound)
SPARE_SECONDS: Final = 15  # beyond what Telegram was asked to wait
CONFLICT: Final = (
    "another program asks Telegram for the updates of this bot; only one can: stop the other, "
    "or get a token of its own for this one"
)
HOOKED: Final = (
    "another program has set a webhook for this bot, and Telegram tells only that: stop the "
    "other, then restart the gateway"
)
REVOKED: Final = "Telegram takes the token no more: get a new one from @BotFather"


class RawUpdates(TelegramMethod[list[dict[str, Any]]]):
    """`getUpdates`, each update as it came: one that cannot be read spoils no other."""

    __returning__ = list[dict[str, Any]]
    __api_method__ = "getUpdates"

    offset: int | None = None
    timeout: int = 0
    allowed_updates: tuple[str, ...] = WANTED


class Polling:
    """Asks, hands over, confirms; until it is cancelled."""

    def __init__(
        self,
        bot: Bot,
        take: Callable[[dict[str, Any]], Awaitable[None]],
        clean: Cleaner,
        refusals: Refusals,
        wait_seconds: int,
        backoff: Backoff = RECONNECT,
    ) -> None:
        self._bot = bot
        self._take = take
        self._clean = clean
        self._wait_seconds = wait_seconds
        self._refusals = refusals
        self._delay = ReconnectDelay(backoff)
        self._next: int | None = None  # the first update that is not confirmed
        self._conflicts = 0  # in a row
        self._complaint = ""

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            try:
                updates = await self._ask()
            except (AiogramError, OSError, ValueError) as error:
                await self._bear(error)
                continue
            self._conflicts = 0
            self._refusals.clear(POLLING)
            if await self._hand_over(updates):
                self._recover()

    async def _bear(self, error: Exception) -> None:
        """Say what is wrong, and wait; for long where Telegram does not want us."""
        meaning = self._meaning(error)
        self._complain(meaning)
        is_refused = isinstance(error, NO_TOKEN)
        self._conflicts += isinstance(error, TelegramConflictError)
        # A request of our own that was cut off is in the way of the next one, for a moment.
        if is_refused or self._conflicts >= CONFLICTS:
            self._refusals.note(POLLING, meaning)
        asked = error.retry_after if isinstance(error, TelegramRetryAfter) else 0
        await asyncio.sleep(max(self._delay.next_delay(is_refused=is_refused), asked))

    async def _ask(self) -> list[dict[str, Any]]:
        method = RawUpdates(offset=self._next, timeout=self._wait_seconds)
        return await self._bot(method, request_timeout=self._wait_seconds + SPARE_SECONDS)

    async def _hand_over(self, updates: list[dict[str, Any]]) -> bool:
        """Hand over in order; False after the first that was not kept."""
        for update in updates:
            try:
                await self._take(update)
            except (OSError, HermesError) as error:
                self._complain(f"a message could not be kept and will come again: {error}")
                await asyncio.sleep(self._delay.next_delay())
                return False
            self._next = int(update["update_id"]) + 1
        return True

    def _meaning(self, error: Exception) -> str:
        if isinstance(error, TelegramConflictError):
            return HOOKED if "webhook" in error.message else CONFLICT
        if isinstance(error, NO_TOKEN):
            return REVOKED
        return self._clean(error)

    def _complain(self, text: str) -> None:
        """Say what is wrong once, however long it lasts."""
        if text != self._complaint:
            log.warning("Telegram: %s", text)
        self._complaint = text

    def _recover(self) -> None:
        if self._complaint:
            log.info("Telegram: updates come again")
        self._complaint = ""
        self._delay.reset()
