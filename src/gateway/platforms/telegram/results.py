"""What Telegram answers to a message, as the gateway understands it."""

from __future__ import annotations

from typing import Final

import aiohttp
from aiogram.exceptions import (
    AiogramError,
    ClientDecodeError,
    DetailedAiogramError,
    TelegramBadRequest,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)

from gateway.platforms.base import ErrorKind, SendResult

# What a description says, in small letters; the first that fits counts.
DESCRIPTION_KINDS: Final = (
    ("too long", ErrorKind.TOO_LONG),
    ("too big", ErrorKind.TOO_LONG),
    ("not found", ErrorKind.NOT_FOUND),
    ("peer_id_invalid", ErrorKind.NOT_FOUND),
    ("rights", ErrorKind.FORBIDDEN),
    ("write_forbidden", ErrorKind.FORBIDDEN),
    ("topic_closed", ErrorKind.FORBIDDEN),
    ("can't be edited", ErrorKind.FORBIDDEN),
)
EXCEPTION_KINDS: Final[tuple[tuple[type[AiogramError], ErrorKind], ...]] = (
    (TelegramForbiddenError, ErrorKind.FORBIDDEN),
    (TelegramNotFound, ErrorKind.NOT_FOUND),
    (TelegramEntityTooLarge, ErrorKind.TOO_LONG),  # before the error of the network that it is
    (TelegramServerError, ErrorKind.TRANSIENT),
    (TelegramUnauthorizedError, ErrorKind.TRANSIENT),  # the token's fault: it stays owed
)
MAX_ERROR_CHARS: Final = 300


class TokenRedactor:
    """Takes the token out of texts: addresses of the Bot API have it in their middle."""

    def __init__(self, token: str) -> None:
        self._secret = token.partition(":")[2] or token

    def __call__(self, error: BaseException) -> str:
        """The text of an error, in one line, without the token."""
        text = error.message if isinstance(error, DetailedAiogramError) else str(error)
        if isinstance(error, ClientDecodeError):
            text = "invalid response"
        text = " ".join(text.split()) or type(error).__name__
        return (text.replace(self._secret, "…") if self._secret else text)[:MAX_ERROR_CHARS]


def failure(error: AiogramError, text: str) -> SendResult:
    """The result of a request that failed with *error*, which says *text*."""
    if isinstance(error, TelegramRetryAfter):
        after = float(error.retry_after)
        return SendResult(False, None, text, ErrorKind.RATE_LIMITED, retry_after=after)
    if isinstance(error, TelegramBadRequest):
        return SendResult(False, None, text, _refusal(error.message))
    for kind, meaning in EXCEPTION_KINDS:
        if isinstance(error, kind):
            return SendResult(False, None, text, meaning)
    if isinstance(error, TelegramNetworkError | ClientDecodeError):
        # Without a connection nothing was sent; with one, nobody knows.
        is_unsent = isinstance(error.__cause__, aiohttp.ClientConnectorError)
        return SendResult(False, None, text, ErrorKind.TRANSIENT, may_have_arrived=not is_unsent)
    return SendResult(False, None, text, ErrorKind.UNKNOWN)


def _refusal(description: str) -> ErrorKind:
    """Why a request was bad; whatever has no word of its own is a matter of the text."""
    small = description.lower()
    return next((kind for words, kind in DESCRIPTION_KINDS if words in small), ErrorKind.BAD_FORMAT)
