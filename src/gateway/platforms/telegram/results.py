"""Maps Telegram errors to send results."""

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

# Substrings of error descriptions, in lower case; the first match counts.
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
    (TelegramEntityTooLarge, ErrorKind.TOO_LONG),  # a subclass of TelegramNetworkError
    (TelegramServerError, ErrorKind.TRANSIENT),
    (TelegramUnauthorizedError, ErrorKind.TRANSIENT),  # a token problem: the reply stays due
)
MAX_ERROR_CHARS: Final = 300


class TokenRedactor:
    """Removes the token from error texts: URLs of the Bot API contain it."""

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
    """The result of a request that failed with *error*; *text* is its description."""
    if isinstance(error, TelegramRetryAfter):
        after = float(error.retry_after)
        return SendResult(False, None, text, ErrorKind.RATE_LIMITED, retry_after=after)
    if isinstance(error, TelegramBadRequest):
        return SendResult(False, None, text, _refusal(error.message))
    for exception, kind in EXCEPTION_KINDS:
        if isinstance(error, exception):
            return SendResult(False, None, text, kind)
    if isinstance(error, TelegramNetworkError | ClientDecodeError):
        # Without a connection nothing was sent; otherwise the outcome is unknown.
        is_unsent = isinstance(error.__cause__, aiohttp.ClientConnectorError)
        return SendResult(False, None, text, ErrorKind.TRANSIENT, may_have_arrived=not is_unsent)
    return SendResult(False, None, text, ErrorKind.UNKNOWN)


def _refusal(description: str) -> ErrorKind:
    """The error kind of a bad request; BAD_FORMAT if the description is unknown."""
    lowered = description.lower()
    return next((kind for part, kind in DESCRIPTION_KINDS if part in lowered), ErrorKind.BAD_FORMAT)
