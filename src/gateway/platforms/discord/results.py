"""Maps Discord errors to send results and platform errors."""

from __future__ import annotations

from typing import Final

import discord
from aiohttp import ClientConnectorError

from gateway import config_values
from gateway.platforms.base import ErrorKind, SendResult
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

STATUS_KINDS: Final = {
    400: ErrorKind.BAD_FORMAT,
    401: ErrorKind.TRANSIENT,  # a token problem: the reply stays due
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    413: ErrorKind.TOO_LONG,
    429: ErrorKind.RATE_LIMITED,
}
FORM_CODE: Final = 50035
TOO_LONG_TEXT: Final = "or fewer in length"
UNAUTHORIZED_TEXT: Final = (
    "Discord rejected DISCORD_BOT_TOKEN. Create a new token in the Developer Portal "
    "(https://discord.com/developers/applications, Bot, Reset Token) and set it in .env or the "
    "environment."
)
INTENT_MISSING: Final = (
    "The bot is not allowed to read messages. Enable MESSAGE CONTENT INTENT in the Developer "
    "Portal (https://discord.com/developers/applications, Bot, Privileged Gateway Intents)."
)
CLOSE_CODE_ERRORS: Final = {4004: UNAUTHORIZED_TEXT, 4013: INTENT_MISSING, 4014: INTENT_MISSING}


def refusal(error: discord.HTTPException) -> SendResult:
    """The result of a rejected send."""
    kind = STATUS_KINDS.get(error.status, ErrorKind.UNKNOWN)
    if error.code == FORM_CODE and TOO_LONG_TEXT in error.text:
        kind = ErrorKind.TOO_LONG
    is_broken = error.status >= 500
    wait = error.response.headers.get("Retry-After") if error.status == 429 else None
    return SendResult(
        False,
        error=describe_error(error),
        error_kind=ErrorKind.TRANSIENT if is_broken else kind,
        retry_after=config_values.fraction(wait, 0.0) or None,
        may_have_arrived=is_broken,
    )


def failure(error: Exception) -> SendResult:
    """The result of a failed send."""
    if isinstance(error, discord.HTTPException):
        return refusal(error)
    if isinstance(error, discord.RateLimited):
        return SendResult(
            False,
            error=describe_error(error),
            error_kind=ErrorKind.RATE_LIMITED,
            retry_after=error.retry_after,
        )
    return SendResult(
        False,
        error=f"no response from Discord: {describe_error(error)}",
        error_kind=ErrorKind.TRANSIENT,
        may_have_arrived=not isinstance(error, ClientConnectorError),
    )


def platform_error(error: Exception) -> PlatformError:
    """The platform error for the end of a connection."""
    if isinstance(error, discord.LoginFailure):
        return PlatformRefusedError(UNAUTHORIZED_TEXT)
    if isinstance(error, discord.ConnectionClosed) and error.code in CLOSE_CODE_ERRORS:
        return PlatformRefusedError(CLOSE_CODE_ERRORS[error.code])
    return PlatformDownError(f"No response from Discord: {describe_error(error)}")


def describe_error(error: Exception) -> str:
    """An error in one line; its type if it has no message."""
    return str(error) or type(error).__name__
