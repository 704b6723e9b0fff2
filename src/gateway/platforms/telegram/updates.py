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
from gateway.platforms.telegram.messages import UPDATE_TYPES
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    Take = Callable[[dict[str, Any]], Awaitable[None]]
    from collections.abc import Awaitable, Callable

    from aiogram import Bot

    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.telegram.results import TokenRedactor

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 1024 * 1024
SECRET_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
WEBHOOK_HEADER: Final = "x-telegram-bot-api-secret-token"
SECRET_VARIABLE: Final = "TELEGRAM_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
DEFAULT_WEBHOOK_PATH: Final = "/telegram"


class TelegramWebhook:
    """Where Telegram delivers updates, and the secret it shows there."""

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

    def route(self, take: Take) -> Route:
        """The route that hands each update to *take*, one after the other."""

        async def deliver(request: Request) -> Response:
            return await self._deliver(request, take)

        return Route(self.path, deliver, methods=["POST"])

    async def _deliver(self, request: Request, take: Take) -> Response:
        shown = request.headers.get(WEBHOOK_HEADER, "").encode()
        if not hmac.compare_digest(shown, self.secret.encode()):
            return PlainTextResponse("forbidden", 403)
        body = await _body(request)
        if body is None:
            return PlainTextResponse("too large", 413)
        update = _read(body)
        if update is None:
            return PlainTextResponse("not an update", 400)
        try:
            async with self._turn:
                await take(update)
        except (OSError, HermesError) as error:
            log.error("Telegram update not stored, expecting redelivery: %s", error)
            return PlainTextResponse("not stored", 503)
        return PlainTextResponse("ok")


async def _body(request: Request) -> bytes | None:
    """What was sent; None when it is too much."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("update_id"), int) else None


POLL_BACKOFF: Final = Backoff(1.0, 60.0)
POLLING_PROBLEM: Final = "polling"
MAX_CONFLICTS: Final = 3
TOKEN_ERRORS: Final = (TelegramUnauthorizedError, TelegramNotFound)
EXTRA_TIMEOUT_SECONDS: Final = 15  # beyond what Telegram was asked to wait
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
    """`getUpdates`, each update as it came: one that cannot be read spoils no other."""

    __returning__ = list[dict[str, Any]]
    __api_method__ = "getUpdates"

    offset: int | None = None
    timeout: int = 0
    allowed_updates: tuple[str, ...] = UPDATE_TYPES


class UpdatePoller:
    """Asks, hands over, confirms; until it is cancelled."""

    def __init__(
        self,
        bot: Bot,
        take: Callable[[dict[str, Any]], Awaitable[None]],
        clean: TokenRedactor,
        problems: ConnectionProblems,
        wait_seconds: int,
        backoff: Backoff = POLL_BACKOFF,
    ) -> None:
        self._bot = bot
        self._take = take
        self._clean = clean
        self._wait_seconds = wait_seconds
        self._problems = problems
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
            self._problems.clear(POLLING_PROBLEM)
            if await self._hand_over(updates):
                self._recover()

    async def _bear(self, error: Exception) -> None:
        """Say what is wrong, and wait; for long where Telegram does not want us."""
        meaning = self._meaning(error)
        self._complain(meaning)
        is_refused = isinstance(error, TOKEN_ERRORS)
        self._conflicts += isinstance(error, TelegramConflictError)
        # A request of our own that was cut off is in the way of the next one, for a moment.
        if is_refused or self._conflicts >= MAX_CONFLICTS:
            self._problems.note(POLLING_PROBLEM, meaning)
        asked = error.retry_after if isinstance(error, TelegramRetryAfter) else 0
        await asyncio.sleep(max(self._delay.next_delay(is_refused=is_refused), asked))

    async def _ask(self) -> list[dict[str, Any]]:
        method = RawUpdates(offset=self._next, timeout=self._wait_seconds)
        return await self._bot(method, request_timeout=self._wait_seconds + EXTRA_TIMEOUT_SECONDS)

    async def _hand_over(self, updates: list[dict[str, Any]]) -> bool:
        """Hand over in order; False after the first that was not kept."""
        for update in updates:
            try:
                await self._take(update)
            except (OSError, HermesError) as error:
                self._complain(f"message not stored, expecting redelivery: {error}")
                await asyncio.sleep(self._delay.next_delay())
                return False
            self._next = int(update["update_id"]) + 1
        return True

    def _meaning(self, error: Exception) -> str:
        if isinstance(error, TelegramConflictError):
            return WEBHOOK_CONFLICT if "webhook" in error.message else POLLING_CONFLICT
        if isinstance(error, TOKEN_ERRORS):
            return REVOKED_TEXT
        return self._clean(error)

    def _complain(self, text: str) -> None:
        """Say what is wrong once, however long it lasts."""
        if text != self._complaint:
            log.warning("Telegram polling failed: %s", text)
        self._complaint = text

    def _recover(self) -> None:
        if self._complaint:
            log.info("Telegram polling recovered")
        self._complaint = ""
        self._delay.reset()
