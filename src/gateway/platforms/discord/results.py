"""What Discord answers, in the words of the gateway."""

from __future__ import annotations

from typing import Final

import discord
from aiohttp import ClientConnectorError

from gateway import config_values
from gateway.platforms.base import ErrorKind, SendResult
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

KINDS: Final = {
    400: ErrorKind.BAD_FORMAT,
    401: ErrorKind.TRANSIENT,  # the token's fault: it is owed until there is another
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    413: ErrorKind.TOO_LONG,
    429: ErrorKind.RATE_LIMITED,
}
FORM_CODE: Final = 50035
TOO_LONG: Final = "or fewer in length"
RESET: Final = (
    "Discord does not accept DISCORD_BOT_TOKEN: make a new one in the Developer Portal "
    "(https://discord.com/developers/applications, Bot, Reset Token) and put it into .env or "
    "the environment"
)
NO_INTENT: Final = (
    "the bot may not read messages: switch on MESSAGE CONTENT INTENT in the Developer Portal "
    "(https://discord.com/developers/applications, Bot, Privileged Gateway Intents)"
)
CLOSED: Final = {4004: RESET, 4013: NO_INTENT, 4014: NO_INTENT}


def refusal(error: discord.HTTPException) -> SendResult:
    """A send that Discord did not take."""
    kind = KINDS.get(error.status, ErrorKind.UNKNOWN)
    if error.code == FORM_CODE and TOO_LONG in error.text:
        kind = ErrorKind.TOO_LONG
    is_broken = error.status >= 500
    wait = error.response.headers.get("Retry-After") if error.status == 429 else None
    return SendResult(
        False,
        error=described(error),
        error_kind=ErrorKind.TRANSIENT if is_broken else kind,
        retry_after=config_values.fraction(wait, 0.0) or None,
        may_have_arrived=is_broken,
    )


def failure(error: Exception) -> SendResult:
    """A send that came to nothing, or whose answer never came."""
    if isinstance(error, discord.HTTPException):
        return refusal(error)
    if isinstance(error, discord.RateLimited):
        return SendResult(
            False,
            error=described(error),
            error_kind=ErrorKind.RATE_LIMITED,
            retry_after=error.retry_after,
        )
    return SendResult(
        False,
        error=f"no answer of Discord: {described(error)}",
        error_kind=ErrorKind.TRANSIENT,
        may_have_arrived=not isinstance(error, ClientConnectorError),
    )


def trouble(error: Exception) -> PlatformError:
    """The end of a connection as an error: of what is configured, or of the moment."""
    if isinstance(error, discord.LoginFailure):
        return PlatformRefusedError(RESET)
    if isinstance(error, discord.ConnectionClosed) and error.code in CLOSED:
        return PlatformRefusedError(CLOSED[error.code])
    return PlatformDownError(f"Discord does not answer: {described(error)}")


def described(error: Exception) -> str:
    """An error in a line; some of them say nothing but their name."""
    return str(error) or type(error).__name__
