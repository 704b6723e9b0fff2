"""Maps Matrix errors to send results and platform errors."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import ClientConnectorError
from nio import ErrorResponse  # type: ignore[import-untyped] # it has no types

from gateway.platforms.base import ErrorKind, SendResult
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

CODE_KINDS: Final = {
    "M_LIMIT_EXCEEDED": ErrorKind.RATE_LIMITED,
    "M_FORBIDDEN": ErrorKind.FORBIDDEN,
    "M_UNKNOWN_TOKEN": ErrorKind.TRANSIENT,  # a token problem: the reply stays due
    "M_MISSING_TOKEN": ErrorKind.TRANSIENT,
    "M_USER_DEACTIVATED": ErrorKind.FORBIDDEN,
    "M_NOT_FOUND": ErrorKind.NOT_FOUND,
    "M_TOO_LARGE": ErrorKind.TOO_LONG,
    "M_BAD_JSON": ErrorKind.BAD_FORMAT,
    "M_INVALID_PARAM": ErrorKind.BAD_FORMAT,
}
TOKEN_CODES: Final = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"})
UNAUTHORIZED_TEXT: Final = (
    "The homeserver rejected MATRIX_ACCESS_TOKEN ({code}). Log the bot in again and set its new "
    "access token in .env or the environment."
)


def is_error(answer: Any) -> bool:
    """Whether a response is an error."""
    return isinstance(answer, ErrorResponse)


def retry_after_seconds(answer: Any) -> float | None:
    """The seconds to wait that the server requests."""
    milliseconds = getattr(answer, "retry_after_ms", None)
    if isinstance(milliseconds, int | float):
        return milliseconds / 1000
    response = getattr(answer, "transport_response", None)
    seconds = response.headers.get("Retry-After", "") if response is not None else ""
    return float(seconds) if seconds.isdigit() else None


def refusal(answer: Any) -> SendResult:
    """The result of a rejected send."""
    status = _http_status(answer)
    kind = CODE_KINDS.get(str(answer.status_code))
    if kind is None:
        kind = ErrorKind.RATE_LIMITED if status == 429 else ErrorKind.UNKNOWN
        kind = ErrorKind.TRANSIENT if status >= 500 else kind
    return SendResult(
        False,
        error=describe_response(answer),
        error_kind=kind,
        retry_after=retry_after_seconds(answer) if kind is ErrorKind.RATE_LIMITED else None,
        may_have_arrived=status >= 500,
    )


def no_response(error: Exception) -> SendResult:
    """The result of a send without a response."""
    was_never_sent = isinstance(error, ClientConnectorError)
    return SendResult(
        False,
        error=f"no response from the homeserver: {describe_exception(error)}",
        error_kind=ErrorKind.TRANSIENT,
        may_have_arrived=not was_never_sent,
    )


def platform_error(answer: Any) -> PlatformError:
    """The platform error of an error response."""
    if str(answer.status_code) in TOKEN_CODES:
        return PlatformRefusedError(UNAUTHORIZED_TEXT.format(code=answer.status_code))
    return PlatformDownError(f"The homeserver returned an error: {describe_response(answer)}")


def describe_exception(error: Exception) -> str:
    """An exception in one line; its type if it has no message."""
    return str(error) or type(error).__name__


def describe_response(answer: Any) -> str:
    """An error response in one line."""
    code = answer.status_code or f"HTTP {_http_status(answer)}"
    return f"{code} {answer.message}"


def _http_status(answer: Any) -> int:
    response = getattr(answer, "transport_response", None)
    return int(response.status) if response is not None else 0
