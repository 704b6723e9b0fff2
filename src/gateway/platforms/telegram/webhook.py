"""Telegram calling us: a route that answers "received" only when the message is kept."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    Take = Callable[[dict[str, Any]], Awaitable[None]]

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
