"""An answer POSTed to where a route wants it, signed; redirects are not followed."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import httpx2

from gateway.platforms.base import ErrorKind, SendResult
from gateway.platforms.webhook import signatures

if TYPE_CHECKING:
    from gateway.platforms.base import Outgoing
    from gateway.platforms.webhook.routes import WebhookRoute

TIMEOUT_SECONDS: Final = 20.0
LONGEST_PAUSE_SECONDS: Final = 86400.0
# Nothing had been sent when these happen.
BEFORE: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
KINDS: Final = {
    401: ErrorKind.FORBIDDEN,
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.TRANSIENT,
    410: ErrorKind.NOT_FOUND,
    413: ErrorKind.TOO_LONG,
    425: ErrorKind.TRANSIENT,
    429: ErrorKind.RATE_LIMITED,
}


def client(timeout: float = TIMEOUT_SECONDS) -> httpx2.AsyncClient:
    """What answers are posted with."""
    return httpx2.AsyncClient(timeout=timeout, follow_redirects=False)


async def deliver(http: httpx2.AsyncClient, route: WebhookRoute, outgoing: Outgoing) -> SendResult:
    """Post an answer; what became of it."""
    body = _payload(route, outgoing)
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": outgoing.key,
        signatures.HERMES: signatures.stamped(route.secret, body, int(time.time())),
        signatures.GITHUB: signatures.plain(route.secret, body),
    }
    try:
        async with http.stream("POST", route.url, content=body, headers=headers) as answer:
            return _result(answer, outgoing)
    except BEFORE as error:
        text = f"the receiver of {route.name} is not reached: {type(error).__name__}"
        return SendResult(False, error=text, error_kind=ErrorKind.TRANSIENT)
    except httpx2.HTTPError as error:
        text = f"the receiver of {route.name} did not answer: {type(error).__name__}"
        kind = ErrorKind.TRANSIENT
        return SendResult(False, error=text, error_kind=kind, may_have_arrived=True)


def _payload(route: WebhookRoute, outgoing: Outgoing) -> bytes:
    facts = {
        "route": route.name,
        "chat_id": outgoing.chat_id,
        "text": outgoing.text,
        "key": outgoing.key,
        "reply_to": outgoing.reply_to,
    }
    return json.dumps(facts, ensure_ascii=False).encode(errors="replace")


def _result(answer: httpx2.Response, outgoing: Outgoing) -> SendResult:
    status = answer.status_code
    if answer.is_success:
        return SendResult(True, message_id=outgoing.key)
    kind = KINDS.get(status, ErrorKind.TRANSIENT if status >= 500 else ErrorKind.BAD_FORMAT)
    text = f"the receiver answered {status}"
    if answer.is_redirect:
        text += ", a redirect, which is not followed"
    pause = _pause(answer.headers.get("retry-after", "")) if status in {429, 503} else None
    return SendResult(False, error=text, error_kind=kind, retry_after=pause)


def _pause(text: str) -> float | None:
    """What `Retry-After` asks for, in seconds or as a date."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_PAUSE_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_PAUSE_SECONDS)
