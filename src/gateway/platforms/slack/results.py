"""Maps Slack errors to send results and platform errors."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import ClientConnectorError, InvalidURL
from slack_sdk.errors import SlackApiError

from gateway import config_values
from gateway.platforms.base import ErrorKind, SendResult
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

REJECTED_CODES: Final = frozenset(
    {
        "account_inactive",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
    }
)
CODE_KINDS: Final = {
    "ratelimited": ErrorKind.RATE_LIMITED,
    "rate_limited": ErrorKind.RATE_LIMITED,
    "channel_not_found": ErrorKind.NOT_FOUND,
    "message_not_found": ErrorKind.NOT_FOUND,
    "thread_not_found": ErrorKind.NOT_FOUND,
    "user_not_found": ErrorKind.NOT_FOUND,
    "access_denied": ErrorKind.FORBIDDEN,
    "cannot_reply_to_message": ErrorKind.FORBIDDEN,
    "cant_update_message": ErrorKind.FORBIDDEN,
    "edit_window_closed": ErrorKind.FORBIDDEN,
    "is_archived": ErrorKind.FORBIDDEN,
    "messages_tab_disabled": ErrorKind.FORBIDDEN,
    "not_in_channel": ErrorKind.FORBIDDEN,
    "restricted_action": ErrorKind.FORBIDDEN,
    "file_too_large": ErrorKind.TOO_LONG,
    "msg_blocks_too_long": ErrorKind.TOO_LONG,
    "msg_too_long": ErrorKind.TOO_LONG,
    "invalid_arguments": ErrorKind.BAD_FORMAT,
    "invalid_blocks": ErrorKind.BAD_FORMAT,
    "no_text": ErrorKind.BAD_FORMAT,
    "fatal_error": ErrorKind.TRANSIENT,
    "internal_error": ErrorKind.TRANSIENT,
    "request_timeout": ErrorKind.TRANSIENT,
    "service_unavailable": ErrorKind.TRANSIENT,
}
# Token problems: replies stay due until the token is replaced.
TOKEN_CODES: Final = REJECTED_CODES - {"missing_scope", "no_permission", "not_allowed_token_type"}
AMBIGUOUS_CODES: Final = (
    "fatal_error",
    "internal_error",
    "request_timeout",
)  # may be partially done
UNAUTHORIZED_TEXT: Final = (
    "Slack rejected {name} ({code}). Check your app at https://api.slack.com/apps ({where}) and "
    "set its token in .env or the environment."
)
TOKEN_PAGES: Final = {
    "SLACK_BOT_TOKEN": "OAuth & Permissions: install the app to the workspace; the token "
    "starts with xoxb-",
    "SLACK_APP_TOKEN": "enable Socket Mode; Basic Information, App-Level Tokens with the "
    "scope connections:write; the token starts with xapp-",
}


def code_of(error: SlackApiError) -> str:
    """The error code of a response; empty if there is none."""
    data = getattr(error.response, "data", None)
    return config_values.text(data.get("error")) if isinstance(data, dict) else ""


def status_of(error: SlackApiError) -> int:
    """The HTTP status of a response."""
    response: Any = error.response
    return int(getattr(response, "status_code", 0) or getattr(response, "status", 0) or 0)


def retry_after_seconds(error: SlackApiError) -> float | None:
    """The seconds of Retry-After."""
    headers = getattr(error.response, "headers", None) or {}
    return config_values.fraction(headers.get("Retry-After"), 0.0) or None


def failure(error: Exception) -> SendResult:
    """The result of a failed send."""
    if isinstance(error, SlackApiError):
        return _refusal(error)
    return SendResult(
        False,
        error=f"no response from Slack: {describe_error(error)}",
        error_kind=ErrorKind.TRANSIENT,
        may_have_arrived=not isinstance(error, ClientConnectorError),
    )


def _refusal(error: SlackApiError) -> SendResult:
    code, status = code_of(error), status_of(error)
    kind = ErrorKind.FORBIDDEN if code in REJECTED_CODES else CODE_KINDS.get(code)
    if code in TOKEN_CODES:
        kind = ErrorKind.TRANSIENT
    if kind is None:
        kind = ErrorKind.RATE_LIMITED if status == 429 else ErrorKind.UNKNOWN
        kind = ErrorKind.TRANSIENT if status >= 500 else kind
    return SendResult(
        False,
        error=describe_error(error),
        error_kind=kind,
        retry_after=retry_after_seconds(error) if kind is ErrorKind.RATE_LIMITED else None,
        may_have_arrived=code in AMBIGUOUS_CODES or (status >= 500 and not code),
    )


def is_token_error(error: Exception) -> bool:
    """Whether Slack rejects the token."""
    return isinstance(error, SlackApiError) and code_of(error) in TOKEN_CODES


def platform_error(error: Exception, name: str) -> PlatformError:
    """The platform error of a failed connection; *name* is the variable of the token."""
    if isinstance(error, SlackApiError) and code_of(error) in REJECTED_CODES:
        text = UNAUTHORIZED_TEXT.format(name=name, code=code_of(error), where=TOKEN_PAGES[name])
        return PlatformRefusedError(text)
    return PlatformDownError(f"No response from Slack: {describe_error(error)}")


def describe_error(error: Exception) -> str:
    """An error in one line, without its URL, which may contain a secret."""
    if isinstance(error, SlackApiError):
        return code_of(error) or f"HTTP {status_of(error)}"
    status = getattr(error, "status", None)
    if status or isinstance(error, InvalidURL):
        return f"HTTP {status}" if status else "invalid URL"
    return str(error) or type(error).__name__
